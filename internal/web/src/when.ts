// The course over time: intervals, with a brush that restricts the other views.

import { Account, Accounts, Count, Explanations, Node, mainOf } from "./data";
import { clear, fit, h, id, s, say } from "./dom";
import { duration, fixed, known, percentOf, trim } from "./format";
import { tones, valueText } from "./tree";

const plot = { height: 220, left: 52, right: 10, top: 8, bottom: 34 };
const pageRows = 50; // of the table of numbers

// weightOf is how much of the whole an account is about: what values of its nodes are averaged by.
export function weightOf(a: Account, of?: string): number {
  if (known(a.scope.share)) return a.scope.share;
  const clock = a.nodes.find(n => n.name === "Info_Thread_CLKS")?.value ?? a.counts.find(c => of && (c.event === of || c.as === of))?.value;
  return known(clock) ? clock : a.scope.duration_s ?? 0;
}

// mean is the account of several: each node's mean, weighted by what the account is about.
export function mean(list: Account[], of?: string): Account {
  if (list.length === 1) return list[0];
  const sums = new Map<string, { node: Node; sum: number; weight: number; n: number }>();
  for (const a of list) {
    const w = weightOf(a, of);
    for (const n of a.nodes) {
      let t = sums.get(n.path);
      if (!t) sums.set(n.path, t = { node: n, sum: 0, weight: 0, n: 0 });
      if (!known(n.value) || w <= 0) continue;
      t.sum += n.value * w; t.weight += w; t.n++;
    }
  }
  const some = list.filter(a => weightOf(a, of) > 0).length;
  const nodes = [...sums.values()].map(({ node, sum, weight, n }): Node => ({ path: node.path, name: node.name, level: node.level, section: node.section, unit: node.unit, value: n > 0 ? sum / weight : null,
    together: false, flagged: false, reliable: n > 0 && n === some, doubt: n < some ? `not known in ${some - n} of ${some} intervals` : undefined, expected: node.expected && { low: node.expected.low, high: node.expected.high } }));
  const first = list[0].scope, last = list[list.length - 1].scope;
  return { scope: { kind: "interval", label: list.every(a => a.scope.label === first.label) ? first.label : "", start_s: first.start_s, duration_s: (last.start_s ?? 0) + (last.duration_s ?? 0) - (first.start_s ?? 0) }, nodes, bottleneck: [], audit: [], missing: [], counts: added(list), notes: [...new Set(list.flatMap(a => a.notes || []))] };
}

// added are the counts of several accounts. One that is not known in one of them is not known.
function added(list: Account[]): Count[] {
  const by = new Map<string, Count & { n: number }>();
  for (const a of list) {
    for (const c of a.counts) {
      const key = [c.event, c.as, c.lp].join("\n"), t = by.get(key);
      if (!t) { by.set(key, { ...c, coverage: undefined, n: 1 }); continue; }
      t.n++;
      t.value = known(t.value) && known(c.value) ? t.value + c.value : null;
      t.samples += c.samples;
      t.state = t.state || c.state;
    }
  }
  return [...by.values()].map(({ n, ...c }) => n === list.length ? c : { ...c, value: null, state: `in ${n} of ${list.length} intervals` });
}

// timed is what the threads did in the scope of an account, as an account.
export function timed(a: Account): Account {
  const t = a.times;
  return { ...a, scope: { ...a.scope, share: undefined }, nodes: t?.nodes || [], bottleneck: t?.bottleneck || [], missing: t?.missing || [], counts: [], audit: [], notes: t?.notes };
}

// nice is a step of an axis that is not smaller than a number: 1, 2 or 5 and zeros.
export function nice(least: number): number {
  const power = Math.pow(10, Math.floor(Math.log10(least || 1)));
  return [1, 2, 5, 10].map(m => m * power).find(v => v >= least * 0.999) as number;
}

export class When {
  readonly element: HTMLElement;
  private list: Account[] = [];
  private bands: Node[];
  private flat: boolean; // no node is known: the shares of intervals are shown
  private svg = s("svg", { class: "timeline", role: "img", tabindex: 0 });
  private figure = h("div", { class: "plot" }, this.svg);
  private readout = h("p", { class: "hint", "aria-live": "polite" });
  private rows = h("tbody");
  private page = 0;
  private width = 0;
  private at = 0;
  private from = -1;
  private to = -1;
  private begin = 0;
  private end = 0;

  constructor(private d: Accounts, private ex: Explanations, private select: (list: Account[] | null) => void) {
    this.read();
    const nodes = mainOf(this.list[0].nodes), roots = nodes.filter(n => !n.path.includes("."));
    this.bands = roots.length > 1 ? roots : nodes.filter(n => n.path.split(".").length === 2);
    this.flat = !this.list.some(a => this.values(a).some(known));
    if (this.flat) this.bands = [{ path: "share", name: "Share of the recording", level: 1, unit: "share", value: null, together: true, reliable: true, flagged: false }];
    const all = h("button", { type: "button" }, "All of the time");
    all.addEventListener("click", () => this.choose(-1, -1));
    const back = h("button", { type: "button" }, "Earlier rows"), on = h("button", { type: "button" }, "Later rows");
    back.addEventListener("click", () => this.turn(-1));
    on.addEventListener("click", () => this.turn(1));
    const legend = h("div", { class: "legend" });
    for (const b of this.bands) legend.append(h("span", { class: "swatch" }, h("i", { class: this.toneOf(b) }), b.name));
    const hId = id("h");
    this.svg.setAttribute("aria-label", `shares of ${this.bands.map(b => b.name).join(", ")} over ${duration(this.end - this.begin)}; arrow keys move, Shift extends, Escape clears; the table below has the numbers`);
    this.element = h("section", { id: "when", "aria-labelledby": hId }, h("h2", { id: hId }, "When"),
      h("p", { class: "hint" }, "Drag over a span, or use Shift and the arrow keys: the other views then show that span. Values of several intervals are means, weighted by cycles or by time."),
      h("div", { class: "tools" }, all), legend, this.figure, this.readout,
      h("details", { class: "numbers" }, h("summary", {}, "All intervals with their numbers"), h("div", { class: "tools" }, back, on), h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "intervals" },
        h("table", {}, h("thead", {}, h("tr", {}, ...["Start", "Duration", ...this.bands.map(b => b.name)].map(t => h("th", { scope: "col", class: "number" }, t)))), this.rows))));
    this.svg.addEventListener("keydown", e => this.key(e));
    this.drag();
    this.turn(0);
    fit(this.figure, w => { this.width = w; this.draw(); });
  }

  get accounts(): Account[] { return this.list; }

  // grown takes accounts that came since.
  grown(): void {
    const chosen = this.from >= 0 ? [this.list[this.from], this.list[this.to]] : null;
    this.read();
    this.top = 0;
    if (chosen) { this.from = this.list.indexOf(chosen[0]); this.to = this.list.indexOf(chosen[1]); if (this.from < 0 || this.to < 0) this.from = this.to = -1; }
    this.at = Math.min(this.at, this.list.length - 1);
    this.draw();
    this.turn(0);
  }

  private read(): void {
    this.list = this.d.accounts.filter(a => a.scope.kind === "interval").sort((x, y) => (x.scope.start_s ?? 0) - (y.scope.start_s ?? 0));
    const last = this.list[this.list.length - 1].scope;
    this.begin = this.list[0].scope.start_s ?? 0;
    this.end = (last.start_s ?? 0) + (last.duration_s ?? 0);
  }

  private toneOf(n: Node): string { return this.flat ? "back" : tones(mainOf(this.list[0].nodes).map(x => x.path))(n.path); }

  private x(t: number): number { return plot.left + (this.width - plot.left - plot.right) * (t - this.begin) / (this.end - this.begin || 1); }

  private y(v: number): number { return plot.top + (plot.height - plot.top - plot.bottom) * (1 - v / this.most()); }

  private top = 0;

  // most is the end of the axis of values.
  private most(): number {
    if (this.top) return this.top;
    let m = 0;
    for (const a of this.list) m = Math.max(m, this.values(a).reduce<number>((t, v) => t + Math.max(0, v ?? 0), 0));
    const step = nice((m || 1) / 4);
    return this.top = this.share() ? Math.ceil(Math.max(this.flat ? m : 1, m) * 5 - 1e-6) / 5 : Math.ceil((m || 1) / step - 1e-6) * step;
  }

  private share(): boolean { return this.flat || this.ex.share(this.d.model, this.bands[0]); }

  // text is the value of a band.
  private text(b: Node, v: number | null): string { return this.flat ? percentOf(v) : valueText(this.ex, this.d.model, { ...b, value: v }); }

  private values(a: Account): (number | null)[] { return this.flat ? [a.scope.share ?? null] : this.bands.map(b => a.nodes.find(n => n.path === b.path)?.value ?? null); }

  private draw(): void {
    if (!this.width) return;
    clear(this.svg);
    this.svg.setAttribute("height", String(plot.height));
    this.svg.setAttribute("width", String(this.width));
    const bottom = plot.height - plot.bottom;
    const below = new Float64Array(this.list.length);
    const table = this.list.map(a => this.values(a));
    this.bands.forEach((b, k) => {
      const parts: string[] = [];
      this.list.forEach((a, i) => {
        const v = table[i][k];
        if (!known(v)) return;
        const x0 = this.x(a.scope.start_s ?? 0).toFixed(1), x1 = this.x((a.scope.start_s ?? 0) + (a.scope.duration_s ?? 0)).toFixed(1), y0 = this.y(below[i]).toFixed(1);
        below[i] += Math.max(0, v);
        parts.push(`M${x0} ${y0}V${this.y(below[i]).toFixed(1)}H${x1}V${y0}z`);
      });
      this.svg.append(s("path", { class: "band " + this.toneOf(b), d: parts.join("") }, s("title", {}, b.name)));
    });
    const grid = s("g", { class: "axis" });
    const steps = this.share() ? Math.round(this.most() * 5) : Math.round(this.most() / nice(this.most() / 4)), each = Math.ceil(steps / 8);
    for (let i = 0; i <= steps; i += each) {
      const v = this.most() * i / steps;
      grid.append(s("line", { x1: plot.left, x2: this.width - plot.right, y1: this.y(v), y2: this.y(v) }), s("text", { x: plot.left - 6, y: this.y(v) + 4, "text-anchor": "end" }, this.share() ? fixed(v * 100, 0) + " %" : trim(v)));
    }
    const step = nice((this.end - this.begin) / Math.max(2, Math.min(8, Math.floor(this.width / 110)))), decimals = Math.max(0, -Math.floor(Math.log10(step)));
    for (let t = Math.ceil(this.begin / step) * step; t <= this.end + step * 1e-9; t += step) {
      grid.append(s("line", { class: "tick", x1: this.x(t), x2: this.x(t), y1: bottom, y2: bottom + 4 }), s("text", { x: Math.min(this.x(t), this.width - plot.right - 14), y: bottom + 16, "text-anchor": "middle" }, fixed(t, decimals)));
    }
    if (!this.share()) grid.append(s("text", { x: plot.left + 4, y: plot.top + 12 }, this.bands[0].unit));
    grid.append(s("text", { x: (plot.left + this.width - plot.right) / 2, y: plot.height - 3, "text-anchor": "middle" }, "seconds"));
    this.svg.append(grid);
    this.mark();
  }

  // mark draws the selection and the cursor.
  private mark(): void {
    for (const e of this.svg.querySelectorAll(".brush, .cursor")) e.remove();
    const bottom = plot.height - plot.bottom;
    if (this.from >= 0) {
      const a = this.x(this.list[this.from].scope.start_s ?? 0), l = this.list[this.to].scope, b = this.x((l.start_s ?? 0) + (l.duration_s ?? 0));
      this.svg.append(s("rect", { class: "brush", x: plot.left, y: plot.top, width: Math.max(0, a - plot.left), height: bottom - plot.top }), s("rect", { class: "brush", x: b, y: plot.top, width: Math.max(0, this.width - plot.right - b), height: bottom - plot.top }));
    }
    const x = this.x((this.list[this.at].scope.start_s ?? 0) + (this.list[this.at].scope.duration_s ?? 0) / 2);
    this.svg.append(s("line", { class: "cursor", x1: x, x2: x, y1: plot.top, y2: bottom }));
  }

  // tell says what there is at the cursor.
  private tell(): void {
    const a = this.list[this.at], v = this.values(a);
    this.readout.textContent = `${fixed(a.scope.start_s ?? 0, 3)} s, for ${duration(a.scope.duration_s ?? 0)}: ` + this.bands.map((b, k) => `${b.name} ${this.text(b, v[k])}`).join(", ");
  }

  // choose selects a span; -1 is all.
  choose(from: number, to: number): void {
    this.from = Math.min(from, to); this.to = Math.max(from, to);
    this.mark();
    if (this.from < 0) { this.select(null); say("all of the time"); return; }
    const chosen = this.list.slice(this.from, this.to + 1);
    this.select(chosen);
    say(`${chosen.length} intervals are selected`);
  }

  private index(x: number): number {
    const t = this.begin + (x - plot.left) / (this.width - plot.left - plot.right) * (this.end - this.begin);
    let low = 0, high = this.list.length - 1;
    while (low < high) { const mid = (low + high + 1) >> 1; if ((this.list[mid].scope.start_s ?? 0) <= t) low = mid; else high = mid - 1; }
    return low;
  }

  private drag(): void {
    let start = -1, moved = false;
    const at = (e: PointerEvent) => this.index(e.clientX - this.svg.getBoundingClientRect().left);
    this.svg.addEventListener("pointerdown", e => { start = at(e); moved = false; this.svg.setPointerCapture(e.pointerId); });
    this.svg.addEventListener("pointermove", e => {
      this.at = at(e);
      if (start >= 0 && (moved || this.at !== start)) { moved = true; this.from = Math.min(start, this.at); this.to = Math.max(start, this.at); }
      this.mark();
      this.tell();
    });
    this.svg.addEventListener("pointerup", e => { if (start >= 0) this.choose(start, at(e)); start = -1; });
  }

  private key(e: KeyboardEvent): void {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : e.key === "PageDown" ? 10 : e.key === "PageUp" ? -10 : 0;
    if (e.key === "Escape") { this.choose(-1, -1); e.preventDefault(); return; }
    if (e.key === "Enter" || e.key === " ") { this.choose(this.at, this.at); e.preventDefault(); return; }
    if (e.key === "Home") this.at = 0;
    else if (e.key === "End") this.at = this.list.length - 1;
    else if (!step) return;
    e.preventDefault();
    const before = this.at;
    this.at = Math.max(0, Math.min(this.list.length - 1, this.at + step));
    if (e.shiftKey) {
      const fixedEnd = this.from < 0 ? before : before === this.from ? this.to : this.from;
      this.choose(fixedEnd, this.at);
    }
    this.mark();
    this.tell();
  }

  // turn shows another page of the table.
  private turn(step: number): void {
    this.page = Math.max(0, Math.min(Math.ceil(this.list.length / pageRows) - 1, this.page + step));
    clear(this.rows);
    for (const a of this.list.slice(this.page * pageRows, (this.page + 1) * pageRows)) {
      const v = this.values(a);
      this.rows.append(h("tr", {}, h("th", { scope: "row", class: "number" }, fixed(a.scope.start_s ?? 0, 3) + " s"), h("td", { class: "number" }, known(a.scope.duration_s) ? duration(a.scope.duration_s) : "–"),
        ...this.bands.map((b, k) => h("td", { class: "number", "data-node": b.path }, this.text(b, v[k])))));
    }
  }
}
