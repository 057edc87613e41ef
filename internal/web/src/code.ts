// Source and assembly with the account of each line and instruction.

import { Account, Document, Head, holding } from "./data";
import { clean, clear, h } from "./dom";
import { known, percentOf, trim } from "./format";

interface PartNode { node: string; value: number; unit: string; error?: number; amount?: number; samples?: number; reliable: boolean; verdict?: string }
interface Part { share?: number; share_of_run?: number; error?: number; samples: number; nodes?: PartNode[]; counts?: { event: string; value: number; samples: number }[] }
interface Line extends Part { file?: string; line?: number; text?: string }
interface Instruction extends Part { addr: string; text?: string; file?: string; line?: number }
interface Loop extends Part { loop: number; header: string; depth: number; inside?: number; file?: string; first_line?: number; last_line?: number; trips?: number; trips_error?: number; trips_at_least?: number; why?: string;
  iterations?: { value: number; error?: number }; per_iteration?: { event: string; value: number; error?: number }[] }

export interface Annotation extends Head, Document {
  clock: string; function: Part & { name: string; symbol?: string; module: string }; costs: { node: string; stalls: string; hidden: number }[];
  lines: Line[]; instructions: Instruction[]; blocks: { instructions: number; loop?: number }[]; loops: Loop[]; notes: string[];
}

// A Sum is what an interval adds to a part of the code: see internal/render.
interface Sum { i: number; n: number; e: number | null; c: [number, number, number][]; f?: (number | string | null)[][]; l?: [number | null, number, number | null, number] }
interface CodeInterval { start_s: number; base: number | null; function: Sum; lines: Sum[]; instructions: Sum[]; loops: Sum[] }

export interface CodeIntervals extends Document { function: string; module: string; nodes: string[]; events: string[]; intervals: CodeInterval[] }

// A Root adds up the squares of errors. What has no samples might have had one, in all together.
class Root {
  private squares = 0;
  private one = 0;
  private unknown = false;

  add(e: number | null, samples: number): void {
    if (e === null) this.unknown = true;
    else if (samples > 0) this.squares += e * e;
    else this.one = Math.max(this.one, e);
  }

  over(whole: number): number | undefined { return this.unknown || whole <= 0 ? undefined : (this.squares > 0 ? Math.sqrt(this.squares) : this.one) / whole; }
}

// during is the code of a function in some intervals. What of it can be added up is: a verdict is that of one interval.
export function during(d: Annotation, of: CodeIntervals, chosen: Account[]): Annotation {
  const held = holding(chosen), list = of.intervals.filter(x => held(x.start_s)), clock = of.events.indexOf(d.clock);
  const count = (s: Sum, col: number) => s.c.find(c => c[0] === col)?.[1] || 0;
  const whole = list.reduce((t, x) => t + count(x.function, clock), 0), base = list.reduce((t, x) => t + (x.base ?? 0), 0);
  const lacking = new Set<number>(); // nodes that are not known in one of the intervals
  for (const x of list) if (x.base) of.nodes.forEach((_, k) => { if (!x.function.f?.some(f => f[0] === k)) lacking.add(k); });
  const part = (sums: Sum[]): Part => {
    if (sums.length === 0) return { samples: 0 };
    const error = new Root(), counts = new Map<number, { event: string; value: number; samples: number }>(), nodes = new Map<number, { n: PartNode; root: Root }>();
    for (const s of sums) {
      error.add(s.e, s.n);
      for (const [col, value, samples] of s.c) { const c = counts.get(col) || { event: of.events[col], value: 0, samples: 0 }; c.value += value; c.samples += samples; counts.set(col, c); }
      for (const [k, amount, e, samples, verdict] of (s.f || []) as [number, number, number | null, number, string?][]) {
        const x = nodes.get(k) || { n: { node: of.nodes[k], value: 0, unit: "cycles", amount: 0, samples: 0, reliable: false }, root: new Root() };
        x.n.amount! += amount; x.n.samples! += samples; x.n.verdict = list.length === 1 ? verdict : undefined;
        x.root.add(e, samples);
        nodes.set(k, x);
      }
    }
    for (const [k, x] of nodes) {
      x.n.value = base > 0 ? x.n.amount! / base : NaN;
      x.n.error = x.root.over(base);
      x.n.reliable = !lacking.has(k) && known(x.n.error) && x.n.error < Math.abs(x.n.value);
    }
    const own = counts.get(clock)?.value || 0;
    return { share: whole > 0 ? own / whole : undefined, error: error.over(whole), samples: sums.reduce((t, s) => t + s.n, 0), counts: [...counts.values()], nodes: [...nodes.values()].map(x => x.n).filter(n => !Number.isNaN(n.value)) };
  };
  // by are the sums of the parts with an index, one for each interval that has samples there.
  const by = (sums: (x: CodeInterval) => Sum[]) => { const m = new Map<number, Sum[]>(); for (const x of list) for (const s of sums(x)) m.set(s.i, [...(m.get(s.i) || []), s]); return (i: number) => m.get(i) || []; };
  const lines = by(x => x.lines), instructions = by(x => x.instructions), loops = by(x => x.loops);
  const loop = (l: Loop, sums: Sum[]): Loop => {
    const p = part(sums), add = (k: number) => sums.reduce((t, s) => t + (s.l?.[k] ?? 0), 0), iterations = add(0), entries = add(2);
    const out: Loop = { loop: l.loop, header: l.header, depth: l.depth, inside: l.inside, file: l.file, first_line: l.first_line, last_line: l.last_line, ...p };
    if (add(1) > 0) { out.iterations = { value: iterations }; out.per_iteration = (p.counts || []).filter(c => c.samples > 0).map(c => ({ event: c.event, value: c.value / iterations })); }
    if (add(3) > 0) out.trips = iterations / entries;
    return out;
  };
  return { ...d, function: { ...part(list.map(x => x.function)), name: d.function.name, symbol: d.function.symbol, module: d.function.module }, lines: d.lines.map((l, i) => ({ file: l.file, line: l.line, text: l.text, ...part(lines(i)) })),
    instructions: d.instructions.map((x, i) => ({ addr: x.addr, text: x.text, file: x.file, line: x.line, ...part(instructions(i)) })), loops: d.loops.map((l, i) => loop(l, loops(i))) };
}

const shortCode = 2000; // instructions that are all shown
const around = 4; // an instruction with samples

export class Code {
  readonly element: HTMLElement;
  private chosen: Account[] | null = null;
  private choice = h("select", { id: "code-function" });
  private body = h("div");
  private assembly = h("input", { type: "checkbox", id: "code-assembly", checked: true });

  constructor(private list: Annotation[], private spans: CodeIntervals[]) {
    list.forEach((d, i) => this.choice.append(h("option", { value: i }, clean(d.function.name) + " in " + clean(d.function.module))));
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

  // show shows the code in some intervals; null is the whole recording.
  show(chosen: Account[] | null): void { this.chosen = chosen; this.draw(); }

  // follows reports whether all of the code follows a selection.
  get follows(): boolean { return this.list.every(d => this.of(d)); }

  // of are the intervals of a function.
  of(d: Annotation): CodeIntervals | undefined { return this.spans.find(s => s.function === d.function.name && s.module === d.function.module); }

  // loop is a loop of a function in the selection.
  loop(name: string | undefined, module: string | undefined, number: number | undefined): Loop | undefined {
    const d = this.list.find(x => x.function.name === name && x.function.module === module), of = d && this.of(d);
    return d && of && this.chosen ? during(d, of, this.chosen).loops.find(l => l.loop === number) : undefined;
  }

  // clock is the event that the parts of a function are compared by.
  clock(name: string | undefined, module: string | undefined): string | undefined { return this.list.find(x => x.function.name === name && x.function.module === module)?.clock; }

  private draw(): void {
    const all = this.list[Number(this.choice.value)];
    clear(this.body);
    if (!all) return;
    const of = this.chosen && this.of(all), apart = of ? (all.function.nodes || []).filter(n => (n.unit === "cycles" || n.unit === "slots") && !of.nodes.includes(n.node)).map(n => n.node) : [];
    const d = of && this.chosen ? during(all, of, this.chosen) : all;
    if (of && this.chosen) this.body.append(h("p", { class: "hint" }, (this.chosen.length === 1 ? "In the selected interval." : "In the selected intervals: the sums of each.") + (apart.length ? ` No sums, and of the whole recording only: ${apart.map(n => n.split(".").pop()).join(", ")}, and what is hidden.` : " What is hidden is of one interval, or of the whole recording.")));
    const nodes = (all.function.nodes || []).filter(n => n.unit === "cycles" || n.unit === "slots").map(n => n.node);
    const events = nodes.length ? [] : (all.function.counts || []).map(c => c.event);
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
    const loopOf = new Map<Instruction, number>();
    let next = 0;
    for (const b of d.blocks) for (let k = 0; k < b.instructions; k++, next++) if (b.loop) loopOf.set(d.instructions[next], b.loop);
    const most = Math.max(0, ...d.lines.map(l => l.share ?? 0));
    const instruction = (i: Instruction) => h("tr", { class: "instruction", "data-addr": i.addr }, h("th", { scope: "row", class: "number" }, i.addr), h("td", { class: "text" }, h("code", {}, (loopOf.get(i) ? "↻" + loopOf.get(i) + " " : "") + clean(i.text || "", 1000))), ...figures(i));
    // Of long code only what is near samples is shown.
    const near = (list: Part[], i: number) => { for (let k = Math.max(0, i - around); k <= i + around && k < list.length; k++) if (list[k].samples > 0 || list[k].counts?.length) return true; return false; };
    const add = (list: Instruction[]) => {
      let left = 0;
      const gap = () => { if (left) rows.push(h("tr", { class: "instruction" }, h("td"), h("td", { class: "text hint", colspan: heads.length - 1 }, left === 1 ? "one instruction without samples" : `${left} instructions without samples`))); left = 0; };
      list.forEach((x, i) => { if (d.instructions.length <= shortCode || near(list, i)) { gap(); rows.push(instruction(x)); } else left++; });
      gap();
    };
    const lines = [...d.lines].sort((a, b) => (a.file || "") < (b.file || "") ? -1 : (a.file || "") > (b.file || "") ? 1 : (a.line || 0) - (b.line || 0)).filter(l => d.lines.length <= shortCode || l.samples > 0 || l.counts?.length);
    for (const l of lines) {
      rows.push(h("tr", { class: "line" + (known(l.share) && l.share > 0 && l.share === most ? " hot" : ""), "data-line": l.line }, h("th", { scope: "row", class: "number" }, l.line ? String(l.line) : ""), h("td", { class: "text" }, h("code", {}, clean(l.text ?? (l.file || ""), 1000))), ...figures(l)));
      if (this.assembly.checked) add(byLine.get(key(l.file, l.line)) || []);
    }
    if (this.assembly.checked || d.lines.length === 0) add(rest);
    const file = d.lines.find(l => l.file)?.file;
    this.body.append(...(file ? [h("p", {}, clean(file))] : []));
    if (d.loops.length) this.body.append(h("h3", {}, "Loops"), ...loopTables(d.loops, clean(d.function.name)));
    this.body.append(h("div", { class: "scroll code", tabindex: 0, role: "region", "aria-label": "code of " + clean(d.function.name) }, h("table", {}, h("caption", { class: "away" }, "code of " + clean(d.function.name)), h("thead", {}, h("tr", {}, ...heads.map((t, i) => h("th", { scope: "col", class: i > 1 ? "number" : "" }, clean(t) || (i === 0 ? "line" : "code"))))), h("tbody", {}, ...rows))));
    if (d.notes.length) this.body.append(h("ul", { class: "notes" }, ...d.notes.map(n => h("li", {}, clean(n, 1000)))));
  }
}

// loopTables are the loops, and what happens in an iteration of each.
function loopTables(list: Loop[], name: string): HTMLElement[] {
  const table = (label: string, heads: string[], rows: HTMLElement[]) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${label} of ${name}` }, h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((t, i) => h("th", { scope: "col", class: i > 0 ? "number" : "" }, t)))), h("tbody", {}, ...rows)));
  const cell = (key: string, text: string, why = "") => h("td", { class: "number", "data-key": key, title: why || undefined }, text);
  const error = (v: number | undefined) => known(v) ? ` ± ${trim(v)}` : "";
  const trips = (l: Loop) => known(l.trips) ? trim(l.trips) + error(l.trips_error) : known(l.trips_at_least) ? `at least ${trim(l.trips_at_least)}` : "–";
  const out = [table("loops", ["Loop", "Where", "Share", "Iterations", "For each entry"], list.map(l => h("tr", { "data-loop": l.loop }, h("th", { scope: "row" }, `↻${l.loop}` + (l.inside ? ` inside ${l.inside}` : "")),
    cell("where", l.first_line ? `lines ${l.first_line}–${l.last_line}` : "at " + l.header), cell("share", known(l.share) ? percentOf(l.share) : ""), cell("iterations", l.iterations ? trim(l.iterations.value) : "–"), cell("trips", trips(l), l.why))))];
  const some = list.filter(l => l.per_iteration?.length), events = [...new Set(some.flatMap(l => (l.per_iteration || []).map(e => e.event)))];
  if (events.length) out.push(table("iterations", ["In each iteration", ...some.map(l => `↻${l.loop}`)], events.map(event => h("tr", {}, h("th", { scope: "row" }, clean(event)), ...some.map(l => {
    const e = l.per_iteration?.find(x => x.event === event);
    return cell("loop" + l.loop, e ? trim(e.value) + error(e.error) : "");
  })))));
  return out;
}
