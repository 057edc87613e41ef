// Stacks as a flame graph: the width of a box is its amount of an event or a node.

import { Document } from "./data";
import { clean, clear, fit, h, id } from "./dom";
import { fixed, group } from "./format";
import { tones as tonesOf } from "./tree";

export interface Stacks extends Document {
  title: string; types: { name: string; unit: string; path: string }[]; main: number; notes: string[];
  boxes: number[][]; names: string[]; modules: string[]; limits: string[]; interval?: { start_s: number; duration_s: number };
}

interface Box { name: string; module: string; limit: string; inlined: boolean; kernel: boolean; values: number[]; parent: number; below: number[]; depth: number }

const first = 5; // numbers of a box before its values
const height = 20;
const tones = ["front", "back", "work", "bad", "f4", "f5", "f6", "f7"];
const steps = 8; // of the colours of a share

// boxesOf are the boxes of a document, each with the numbers of those on it.
function boxesOf(d: Stacks): Box[] {
  const list: Box[] = d.boxes.map(b => ({ name: d.names[b[1]], module: d.modules[b[2]], limit: d.limits[b[3]] || "", inlined: (b[4] & 1) !== 0, kernel: (b[4] & 2) !== 0, parent: b[0], values: b.slice(first), below: [], depth: 0 }));
  return linked(list);
}

function linked(list: Box[]): Box[] {
  list.forEach((b, i) => { if (b.parent >= 0) { list[b.parent].below.push(i); b.depth = list[b.parent].depth + 1; } });
  return list;
}

// merged are the boxes of several documents as one: boxes of the same calls are one box, with the sums of their values by the types of d. The bottleneck is that of the heaviest.
function merged(d: Stacks, parts: Stacks[]): Box[] {
  const out: Box[] = [{ name: "all", module: "", limit: "", inlined: false, kernel: false, parent: -1, values: d.types.map(() => 0), below: [], depth: 0 }];
  const at = new Map<string, number>(), most: number[] = [0];
  for (const part of parts) {
    const types = d.types.map(t => part.types.findIndex(x => x.path === t.path && x.name === t.name));
    const to: number[] = [];
    boxesOf(part).forEach((b, i) => {
      let n = 0;
      if (b.parent >= 0) {
        const key = [to[b.parent], b.inlined, b.module, b.name].join("\n");
        n = at.get(key) ?? out.length;
        if (n === out.length) { at.set(key, n); most.push(0); out.push({ ...b, limit: "", parent: to[b.parent], values: d.types.map(() => 0), below: [] }); }
      }
      to[i] = n;
      types.forEach((k, j) => { if (k >= 0) out[n].values[j] += b.values[k] || 0; });
      const weight = b.values[part.main] || 0;
      if (weight > most[n]) { most[n] = weight; out[n].limit = b.limit; }
    });
  }
  return linked(out);
}

// amount is a number of slots, cycles or events.
export function amount(v: number): string { return v >= 1e15 ? v.toExponential(3) : group(fixed(v, 0)); }

export function percent(v: number, of: number): string { return of > 0 ? fixed(100 * v / of, 2) + " %" : "–"; }

export class Flame {
  readonly element: HTMLElement;
  private boxes: Box[];
  private whole: Box[];
  private graph = h("div", { class: "flame", role: "group", "aria-label": "flame graph" });
  private legend = h("div", { class: "legend" });
  private details = h("div", { class: "detail", "aria-live": "polite" });
  private matched = h("span", { class: "hint", role: "status" });
  private type: number;
  private colour: string;
  private zoomed = 0;
  private find: ((s: string) => boolean) | null = null;
  private width = 0;
  private tone = new Map<string, string>();
  private bases = new Map<string, number[]>(); // by unit: the types that make up the whole

  constructor(private d: Stacks) {
    this.boxes = this.whole = boxesOf(d);
    this.type = d.main;
    d.types.forEach((t, k) => { if (t.path && !t.path.includes(".")) this.bases.set(t.unit, [...(this.bases.get(t.unit) || []), k]); });
    const limited = this.boxes.some(b => b.limit !== "");
    this.colour = limited ? "bottleneck" : "module";
    const widths = h("select", { id: id("width") }), colours = h("select", { id: id("colour") }), search = h("input", { type: "search", id: id("find"), placeholder: "part of a name, or /regular expression/" });
    d.types.forEach((t, i) => widths.append(h("option", { value: i }, clean(t.path || t.name) + (t.unit ? ` (${clean(t.unit)})` : ""))));
    widths.value = String(this.type);
    for (const c of limited ? ["bottleneck", "module"] : ["module"]) colours.append(h("option", { value: c }, c));
    d.types.forEach((t, i) => { if (t.path && this.bases.has(t.unit)) colours.append(h("option", { value: i }, "share of " + clean(t.path))); });
    widths.addEventListener("change", () => { this.type = Number(widths.value); if (this.value(this.zoomed) <= 0) this.zoomed = 0; this.assign(); this.draw(); });
    colours.addEventListener("change", () => { this.colour = colours.value; this.assign(); this.draw(); });
    search.addEventListener("input", () => { this.find = matcher(search.value.trim()); this.draw(); });
    const whole = h("button", { type: "button" }, "Whole graph");
    whole.addEventListener("click", () => this.zoom(0));
    const hId = id("h");
    this.element = h("section", { id: "stacks", "aria-labelledby": hId }, h("h2", { id: hId }, "Stacks"),
      h("p", { class: "hint" }, "A box is as wide as what its calls took, with all above it. Click or Enter zooms; arrow keys move; Escape shows all."),
      h("div", { class: "tools" }, h("label", { for: widths.id }, "Width ", widths), h("label", { for: colours.id }, "Colour ", colours), h("label", { for: search.id }, "Search ", search), whole, this.matched),
      this.legend, this.graph, this.details, d.notes.length ? h("details", { class: "numbers" }, h("summary", {}, d.notes.length === 1 ? "One note" : `${d.notes.length} notes`), h("ul", { class: "notes" }, ...d.notes.map(n => h("li", {}, clean(n, 1000))))) : null);
    this.graph.addEventListener("click", e => { const b = (e.target as Element).closest<HTMLElement>("[data-box]"); if (b) this.zoom(Number(b.dataset.box)); });
    for (const event of ["mouseover", "focusin"]) this.graph.addEventListener(event, e => { const b = (e.target as Element).closest<HTMLElement>("[data-box]"); if (b) this.describe(Number(b.dataset.box)); });
    this.graph.addEventListener("keydown", e => this.key(e));
    this.assign();
    fit(this.graph, w => { this.width = w; this.draw(); });
  }

  // show shows the stacks of some intervals; null is the whole recording.
  show(parts: Stacks[] | null): void {
    this.boxes = parts ? merged(this.d, parts) : this.whole;
    this.zoomed = 0;
    this.assign();
    this.draw();
  }

  private value(i: number): number { return this.boxes[i].values[this.type] || 0; }

  // shareOf is the part of the whole of a box that a node has.
  private shareOf(b: Box, type: number): number {
    let whole = 0;
    for (const k of this.bases.get(this.d.types[type].unit) || []) whole += b.values[k] || 0;
    return whole > 0 ? Math.min(1, (b.values[type] || 0) / whole) : 0;
  }

  private key_(b: Box): string { return this.colour === "module" ? (b.kernel ? "kernel" : b.module) : b.limit; }

  // assign gives names their colours: those with the most the first ones.
  private assign(): void {
    clear(this.legend);
    this.tone.clear();
    const swatch = (tone: string, text: string) => this.legend.append(h("span", { class: "swatch" }, h("i", { class: tone }), clean(text)));
    if (!Number.isNaN(Number(this.colour))) {
      for (let k = 0; k < steps; k++) swatch("heat" + k, `${fixed(100 * k / steps, 0)}–${fixed(100 * (k + 1) / steps, 0)} %`);
      return;
    }
    const sums = new Map<string, number>();
    this.boxes.forEach((b, i) => { const own = this.value(i) - b.below.reduce((t, c) => t + this.value(c), 0), k = this.key_(b); sums.set(k, (sums.get(k) || 0) + Math.max(0, own)); });
    const names = [...sums.keys()].filter(k => k !== "").sort((x, y) => (sums.get(y) || 0) - (sums.get(x) || 0) || (x < y ? -1 : 1));
    const tone = tonesOf(this.d.types.filter(t => t.path).map(t => t.path)), used = new Set<string>();
    for (const n of names.slice(0, tones.length)) {
      const path = this.d.types.find(t => t.path && t.name === n)?.path;
      let own = path && this.colour !== "module" ? tone(path) : "";
      if (!own || used.has(own) || own === "all") own = tones.find(t => !used.has(t)) || "all";
      used.add(own);
      this.tone.set(n, own);
      swatch(own, n);
    }
    if (names.length > tones.length) swatch("all", "others");
  }

  private toneOf(b: Box): string {
    const type = Number(this.colour);
    if (!Number.isNaN(type)) return "heat" + Math.min(steps - 1, Math.floor(this.shareOf(b, type) * steps));
    return this.tone.get(this.key_(b)) || "all";
  }

  private draw(): void {
    if (!this.width) return;
    const shown = document.createDocumentFragment(), root = this.boxes[this.zoomed];
    let deepest = 0;
    const place = (i: number, x: number, w: number, under: boolean) => {
      const b = this.boxes[i];
      deepest = Math.max(deepest, b.depth);
      const text = clean(b.name) + "  " + percent(this.value(i), this.value(0));
      const e = h("button", { type: "button", class: "box " + this.toneOf(b) + (under ? " under" : "") + (this.find && i > 0 && this.find(b.name) ? " found" : ""), "data-box": i, title: text, "aria-label": text, tabindex: i === this.zoomed ? 0 : -1 }, short(clean(b.name), w));
      e.style.left = x + "px"; e.style.top = b.depth * height + "px"; e.style.width = Math.max(w, 0.5) + "px";
      shown.append(e);
    };
    const above: number[] = [];
    for (let i = root.parent; i >= 0; i = this.boxes[i].parent) above.unshift(i);
    for (const i of above) place(i, 0, this.width, true);
    const scale = this.value(this.zoomed) > 0 ? this.width / this.value(this.zoomed) : 0;
    const walk: [number, number][] = [[this.zoomed, 0]];
    for (let at = walk.pop(); at; at = walk.pop()) {
      const w = this.value(at[0]) * scale;
      if (w < 0.5) continue;
      place(at[0], at[1], w, false);
      let x = at[1];
      for (const c of this.boxes[at[0]].below) { walk.push([c, x]); x += this.value(c) * scale; }
    }
    clear(this.graph);
    this.graph.append(shown);
    this.graph.style.height = (deepest + 1) * height + "px";
    this.matched.textContent = this.find ? percent(this.found(), this.value(0)) + " matched" : "";
    this.describe(this.zoomed);
  }

  // found adds up the boxes that match, but for those that stand on one.
  private found(): number {
    let sum = 0;
    const walk = [0];
    for (let i = walk.pop(); i !== undefined; i = walk.pop()) {
      if (i > 0 && this.find?.(this.boxes[i].name)) sum += this.value(i);
      else walk.push(...this.boxes[i].below);
    }
    return sum;
  }

  zoom(i: number): void {
    const had = this.graph.contains(document.activeElement);
    this.zoomed = i;
    this.draw();
    if (had) this.graph.querySelector<HTMLElement>(`[data-box="${i}"]`)?.focus();
  }

  private describe(i: number): void {
    const b = this.boxes[i], t = this.d.types[this.type];
    clear(this.details);
    let text = (b.module ? " in " + clean(b.module) : "") + (b.inlined ? ", inlined" : "") + (b.kernel ? ", kernel" : "") + ": ";
    text += `${amount(this.value(i))} ${clean(t?.unit || "")}, ${percent(this.value(i), this.value(0))} of all`;
    if (this.zoomed !== 0) text += `, ${percent(this.value(i), this.value(this.zoomed))} of what is shown`;
    if (b.limit) text += "; bottleneck " + clean(b.limit);
    this.details.append(h("b", {}, clean(b.name)), text);
  }

  private key(e: KeyboardEvent): void {
    const at = Number((document.activeElement as HTMLElement | null)?.dataset?.box ?? NaN);
    if (Number.isNaN(at)) return;
    const b = this.boxes[at], beside = b.parent >= 0 ? this.boxes[b.parent].below : [at];
    let to: number | undefined;
    switch (e.key) {
      case "ArrowDown": to = b.below.reduce<number | undefined>((m, c) => m === undefined || this.value(c) > this.value(m) ? c : m, undefined); break;
      case "ArrowUp": to = b.parent; break;
      case "ArrowLeft": to = beside[beside.indexOf(at) - 1]; break;
      case "ArrowRight": to = beside[beside.indexOf(at) + 1]; break;
      case "Escape": this.zoom(0); break;
      default: return;
    }
    e.preventDefault();
    if (to !== undefined && to >= 0) this.graph.querySelector<HTMLElement>(`[data-box="${to}"]`)?.focus();
  }
}

// short is as much of a name as is worth showing in so many dots: without the directories of
// a Go package if it does not fit.
function short(name: string, width: number): string {
  if (width < 24) return "";
  if (name.length * 7.3 <= width) return name;
  const end = name.search(/[(\[<]/);
  return name.slice(name.lastIndexOf("/", end < 0 ? name.length : end) + 1);
}

// matcher returns whether a name is one that is searched for.
function matcher(text: string): ((s: string) => boolean) | null {
  if (text === "") return null;
  const m = /^\/(.+?)\/?$/.exec(text);
  if (m) {
    try { const r = new RegExp(m[1], "i"); return s => r.test(s); } catch { return () => false; }
  }
  const part = text.toLowerCase();
  return s => s.toLowerCase().includes(part);
}
