// Source and assembly with the account of each line and instruction.

import { Document, Head } from "./data";
import { clean, clear, h } from "./dom";
import { known, percentOf, trim } from "./format";

interface PartNode { node: string; value: number; unit: string; error?: number; amount?: number; samples?: number; reliable: boolean; verdict?: string }
interface Part { share?: number; share_of_run?: number; error?: number; samples: number; nodes?: PartNode[]; counts?: { event: string; value: number; samples: number }[] }
interface Line extends Part { file?: string; line?: number; text?: string }
interface Instruction extends Part { addr: string; text?: string; file?: string; line?: number; loop?: number }
interface Loop extends Part { loop: number; header: string; depth: number; inside?: number; file?: string; first_line?: number; last_line?: number; trips?: number; trips_error?: number; trips_at_least?: number; why?: string;
  iterations?: { value: number; error?: number }; per_iteration?: { event: string; value: number; error?: number }[] }

export interface Annotation extends Head, Document {
  clock: string; function: Part & { name: string; symbol?: string; module: string }; costs: { node: string; stalls: string; hidden: number }[];
  lines: Line[]; instructions: Instruction[]; loops: Loop[]; notes: string[];
}

export class Code {
  readonly element: HTMLElement;
  private choice = h("select", { id: "code-function" });
  private body = h("div");
  private assembly = h("input", { type: "checkbox", id: "code-assembly", checked: true });

  constructor(private list: Annotation[]) {
    list.forEach((d, i) => this.choice.append(h("option", { value: i }, clean(d.function.name) + "  " + clean(d.function.module))));
    this.choice.addEventListener("change", () => this.draw());
    this.assembly.addEventListener("change", () => this.draw());
    this.element = h("section", { id: "code", "aria-labelledby": "code-h" }, h("h2", { id: "code-h" }, "Code"),
      h("p", { class: "hint" }, "Shares are of the function's own. ✗ hidden: an event with no stalled cycles near it, of which fewer would gain nothing. Grey figures are unreliable."),
      h("div", { class: "tools" }, h("label", { for: "code-function" }, "Function ", this.choice), h("label", { for: "code-assembly" }, this.assembly, " assembly")), this.body);
    this.draw();
  }

  // opener returns what shows a function, if the page has its code.
  opener(name: string | undefined, module: string | undefined): (() => void) | undefined {
    const i = this.list.findIndex(d => (d.function.name === name || d.function.symbol === name) && d.function.module === module);
    if (i < 0) return undefined;
    return () => { this.choice.value = String(i); this.draw(); this.element.scrollIntoView(); this.choice.focus({ preventScroll: true }); };
  }

  private draw(): void {
    const d = this.list[Number(this.choice.value)];
    clear(this.body);
    if (!d) return;
    const nodes = (d.function.nodes || []).filter(n => n.unit === "cycles" || n.unit === "slots").map(n => n.node);
    const events = nodes.length ? [] : (d.function.counts || []).map(c => c.event);
    const heads = ["", "", "share", "±", "samples", ...nodes.map(n => n.split(".").pop() || n), ...events];
    const figures = (p: Part): HTMLElement[] => {
      const cell = (key: string, text: string, mark = "", why = "") => h("td", { class: "number " + mark, "data-key": key, title: why || undefined }, text);
      const out = [cell("share", known(p.share) ? percentOf(p.share) : ""), cell("error", known(p.error) ? percentOf(p.error) : ""), cell("samples", p.samples ? String(p.samples) : "")];
      for (const node of nodes) {
        const n = p.nodes?.find(x => x.node === node), hidden = n?.verdict === "hidden";
        out.push(cell(node, n ? percentOf(n.value) + (hidden ? " ✗" : n.reliable ? "" : " ?") : "", n && !n.reliable ? "doubtful" : hidden ? "hidden" : "", n ? [n.verdict || "", n.reliable ? "" : "unreliable"].filter(t => t).join(", ") : ""));
      }
      for (const event of events) { const c = p.counts?.find(x => x.event === event); out.push(cell(event, c ? trim(c.value) : "")); }
      return out;
    };
    const rows: HTMLTableRowElement[] = [], byLine = new Map<string, Instruction[]>(), rest: Instruction[] = [];
    const key = (file?: string, line?: number) => file + "\n" + line;
    for (const i of d.instructions) { if (i.line) byLine.set(key(i.file, i.line), [...(byLine.get(key(i.file, i.line)) || []), i]); else rest.push(i); }
    const most = Math.max(0, ...d.lines.map(l => l.share ?? 0));
    const instruction = (i: Instruction) => h("tr", { class: "instruction", "data-addr": i.addr }, h("th", { scope: "row", class: "number" }, i.addr), h("td", { class: "text" }, h("code", {}, (i.loop ? "↻" + i.loop + " " : "") + clean(i.text || "", 1000))), ...figures(i));
    const lines = [...d.lines].sort((a, b) => (a.file || "") < (b.file || "") ? -1 : (a.file || "") > (b.file || "") ? 1 : (a.line || 0) - (b.line || 0));
    for (const l of lines) {
      rows.push(h("tr", { class: "line" + (known(l.share) && l.share > 0 && l.share === most ? " hot" : ""), "data-line": l.line }, h("th", { scope: "row", class: "number" }, l.line ? String(l.line) : ""), h("td", { class: "text" }, h("code", {}, clean(l.text ?? (l.file || ""), 1000))), ...figures(l)));
      if (this.assembly.checked) for (const i of byLine.get(key(l.file, l.line)) || []) rows.push(instruction(i));
    }
    if (this.assembly.checked || d.lines.length === 0) for (const i of rest) rows.push(instruction(i));
    const file = d.lines.find(l => l.file)?.file;
    this.body.append(...(file ? [h("p", {}, clean(file))] : []));
    if (d.loops.length) this.body.append(h("h3", {}, "Loops"), h("ul", {}, ...d.loops.map(l => h("li", { "data-loop": l.loop }, clean(loopText(l), 1000)))));
    this.body.append(h("div", { class: "scroll code", tabindex: 0, role: "region", "aria-label": "code of " + clean(d.function.name) }, h("table", {}, h("caption", { class: "away" }, "code of " + clean(d.function.name)), h("thead", {}, h("tr", {}, ...heads.map((t, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, clean(t) || (i === 0 ? "line" : "code"))))), h("tbody", {}, ...rows))));
    if (d.notes.length) this.body.append(h("ul", { class: "notes" }, ...d.notes.map(n => h("li", {}, clean(n, 1000)))));
  }
}

// loopText is a loop in words.
function loopText(l: Loop): string {
  const parts = [`loop ${l.loop}${l.inside ? ` inside ${l.inside}` : ""}: ${l.first_line ? `lines ${l.first_line}–${l.last_line}` : "at " + l.header}, ${percentOf(l.share)}`];
  if (known(l.trips)) parts.push(`${trim(l.trips)} iterations for each entry` + (known(l.trips_error) ? ` ± ${trim(l.trips_error)}` : ""));
  else if (known(l.trips_at_least)) parts.push(`at least ${trim(l.trips_at_least)} iterations for each entry`);
  if (l.iterations) parts.push(`${trim(l.iterations.value)} iterations`);
  if (l.per_iteration?.length) parts.push("each: " + l.per_iteration.map(e => `${e.event} ${trim(e.value)}` + (known(e.error) ? ` ± ${trim(e.error)}` : "")).join(", "));
  return parts.join("; ");
}
