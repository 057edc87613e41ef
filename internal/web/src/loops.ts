// The core model's loops: cycles of an iteration, what limits them, the chain, the ports.

import { Code } from "./code";
import { Account, Document } from "./data";
import { clean, clear, h, id } from "./dom";
import { known, percentOf, trim } from "./format";

interface PortUse { port: string; cycles: number | null }
interface Piece {
  module?: string; function?: string; loop?: number; file?: string; first_line?: number; last_line?: number; share?: number; samples?: number;
  instructions: { addr: string; text: string; line?: number }[];
  cores: { core: string; cycles: number | null; uops: number | null; limits: { kind: string; cycles: number | null; ports?: string[]; queue?: string }[]; chain: { instruction: number; latency: number | null; by: string }[];
    ports: PortUse[]; instructions: { uops: number | null; latency: number | null; in_chain?: boolean; trust: string }[] }[];
  measured?: { cycles: number | null; error?: number; how: string; difference?: string };
  what_ifs?: { if: string; cycles: number | null }[]; advice?: { fault: string; text: string }[]; notes?: string[];
  picture?: string; // SVG: the way of the uops through the pipeline
}

export interface Core extends Document { title: string; of?: string; pieces: Piece[]; notes?: string[] }

// Loops are the loops of a document, one below the other.
export class Loops {
  readonly element: HTMLElement;
  private pieces: { p: Piece; heading: HTMLElement; measured: HTMLElement; what: string }[] = [];

  constructor(d: Core, private code: Code | null) {
    const hId = id("h");
    this.element = h("section", { id: "loops", "aria-labelledby": hId }, h("h2", { id: hId }, "Loops in the core model"),
      h("p", { class: "hint" }, "Cycles of an iteration, with caches and branch prediction taken to be perfect. The largest limit decides. The model is of the code: only shares and measured cycles depend on the time."),
      ...d.pieces.map((p, i) => {
        const what = [p.function || "", p.loop ? `loop ${p.loop}` : "", p.first_line ? `lines ${p.first_line}–${p.last_line}` : ""].filter(t => t).join(", ");
        const x = { p, heading: h("h3"), measured: h("p"), what: what || `block ${i + 1}` };
        this.pieces.push(x);
        return h("div", { class: "piece", "data-piece": i }, x.heading, x.measured, ...model(p, x.what));
      }), d.notes?.length ? h("ul", { class: "notes" }, ...d.notes.map(n => h("li", {}, n))) : null);
    this.show(null);
  }

  // show shows what was measured in some intervals; null is the whole recording.
  show(chosen: Account[] | null): void {
    for (const x of this.pieces) {
      const l = chosen ? this.code?.loop(x.p.function, x.p.module, x.p.loop) : undefined, clock = this.code?.clock(x.p.function, x.p.module);
      let share = x.p.share, m = x.p.measured;
      if (chosen && l) {
        const count = (list: { event: string; value: number | null }[] | undefined) => list?.find(c => c.event === clock)?.value ?? 0;
        share = count(l.counts) / chosen.reduce((t, a) => t + count(a.counts), 0);
        const cycles = l.per_iteration?.find(e => e.event === clock)?.value;
        m = x.p.measured && { cycles: cycles ?? null, how: x.p.measured.how };
      }
      x.heading.textContent = clean(x.what + (known(share) ? ", " + percentOf(share) : "") + (chosen && !l ? ", of the whole recording" : ""));
      clear(x.measured);
      x.measured.hidden = !m;
      if (m) x.measured.append("Measured: ", h("span", { class: "number", "data-key": "measured" }, trim(m.cycles)), known(m.error) ? ` ± ${trim(m.error)}` : "", ` cycles (${m.how})`, m.difference ? ". " + m.difference : "");
    }
  }
}

// model is what the core model says of a piece of code.
function model(p: Piece, where: string): HTMLElement[] {
  const out: HTMLElement[] = [];
  p.cores.forEach((c, k) => {
    const most = Math.max(...c.limits.map(l => l.cycles ?? 0), ...c.ports.map(x => x.cycles ?? 0), 1e-9);
    const bar = (v: number | null) => { const b = h("span", { class: "meter " + (v === most ? "front" : "back"), "aria-hidden": "true" }); b.style.width = 160 * (v ?? 0) / most + "px"; return h("td", {}, b); };
    const table = (label: string, heads: string[], rows: HTMLTableRowElement[]) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${label} of ${where} on ${c.core}` }, h("table", {}, h("thead", {}, h("tr", {}, ...heads.map(t => h("th", { scope: "col" }, t)))), h("tbody", {}, ...rows)));
    const number = (v: number | null, key: string) => h("td", { class: "number", "data-key": key }, trim(v));
    out.push(h("p", { "data-core": k }, h("b", {}, c.core), ": ", h("span", { class: "number", "data-key": "cycles" }, trim(c.cycles)), c.cycles === 1 ? " cycle, " : " cycles, ", h("span", { class: "number" }, trim(c.uops)), " uops"));
    out.push(h("div", { class: "two" }, table("limits", ["Limit", "Cycles", "Part"], c.limits.map(l => h("tr", {}, h("th", { scope: "row" }, l.kind + (l.ports ? ` (${l.ports.join(", ")})` : "") + (l.queue ? ` (${l.queue})` : "")), number(l.cycles, "limit"), bar(l.cycles)))),
      table("ports", ["Port", "Cycles", "Part"], c.ports.map(x => h("tr", {}, h("th", { scope: "row" }, x.port), number(x.cycles, "port"), bar(x.cycles))))));
    const chained = new Map(c.chain.map(l => [l.instruction, l]));
    out.push(table("instructions", ["Address", "Instruction", "Uops", "Latency", "Chain"], p.instructions.map((x, n) => {
      const y = c.instructions[n], l = chained.get(n);
      return h("tr", { class: y?.in_chain ? "line hot" : "" }, h("th", { scope: "row" }, x.addr), h("td", { class: "text" }, h("code", {}, clean(x.text, 500))), number(y?.uops ?? null, "uops"), number(y?.latency ?? null, "latency"), h("td", {}, l ? `${trim(l.latency)} by ${l.by}` : ""));
    })));
  });
  if (p.picture) {
    const img = h("img", { src: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(p.picture), alt: `The pipeline, cycle by cycle: each uop of ${where} is fetched, dispatched, executed and retired.` });
    out.push(h("details", {}, h("summary", {}, "Picture of the pipeline"), h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `picture of ${where}` }, img)));
  }
  for (const [title, list] of [["What if", p.what_ifs?.map(w => `${w.if}: ${trim(w.cycles)} ${w.cycles === 1 ? "cycle" : "cycles"}`)], ["Advice", p.advice?.map(a => a.text)], ["Notes", p.notes]] as const) if (list?.length) out.push(h("p", {}, h("b", {}, title)), h("ul", {}, ...list.map(t => h("li", {}, clean(t, 1000)))));
  return out;
}
