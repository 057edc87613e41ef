// Stacks as a flame graph: the width of a box is its amount of an event or a node.

import { Document } from "./data";
import { clean, clear, fit, h, id } from "./dom";
import { fixed, group } from "./format";
import { tones as tonesOf } from "./tree";

export interface Stacks extends Document {
  title: string; types: { name: string; unit: string; path: string }[]; main: number; notes: string[];
  boxes: number[][]; names: string[]; modules: string[]; limits: string[];
}

interface Box { name: string; module: string; limit: string; inlined: boolean; kernel: boolean; values: number[]; parent: number; below: number[]; depth: number }

const first = 5; // numbers of a box before its values
const height = 20;
const tones = ["front", "back", "work", "bad", "f4", "f5", "f6", "f7"];
const steps = 8; // of the colours of a share

// boxesOf are the boxes of a document, each with the numbers of those on it.
function boxesOf(d: Stacks): Box[] {
  return linked(d.boxes.map(b => box(d, b[1], b[2], d.limits[b[3]] || "", b[4], b[0], b.slice(first))));
}

function box(d: { names: string[]; modules: string[] }, name: number, module: number, limit: string, flags: number, parent: number, values: number[]): Box {
  return { name: d.names[name], module: d.modules[module], limit, inlined: (flags & 1) !== 0, kernel: (flags & 2) !== 0, parent, values, below: [], depth: 0 };
}

function linked(list: Box[]): Box[] {
  list.forEach((b, i) => { if (b.parent >= 0) { list[b.parent].below.push(i); b.depth = list[b.parent].depth + 1; } });
  return list;
}

// StackIntervals are the stacks of intervals. A row has a box, a place, how many types have a value, and each type with its value: of the stacks that end at the box. Wholes are types behind the others.
// A place has its number, that of its bottleneck, how many nodes have an amount, and each node with its amount.
export interface StackIntervals extends Document {
  types: Stacks["types"]; units: string[]; main: number; boxes: [number, number, number, number][]; names: string[]; modules: string[]; limits: string[]; intervals: { start_s: number; places: number[]; rows: number[] }[];
}

// each hands out the groups of numbers of a list: the first two, and pairs.
function each(list: number[], group: (first: number, second: number, pairs: number, till: number) => void): void {
  for (let i = 0; i < list.length;) { const till = i + 3 + 2 * list[i + 2]; group(list[i], list[i + 1], i + 3, till); i = till; }
}

const narrowest = 1 / 40000; // the part of the whole that a box has at least

// together are the boxes of some intervals. A box has the values of all above it, and the bottleneck with the most of the main type. The amounts of nodes at a place are the sums of the intervals; a stack has its part of them.
export function together(d: StackIntervals, chosen: (start: number) => boolean): Box[] {
  const n = d.boxes.length, sums = d.types.map(() => new Float64Array(n)), limits: (Map<number, number> | undefined)[] = [], list = d.intervals.filter(x => chosen(x.start_s));
  const units = d.units.length, nodes = d.types.filter(t => t.path).length, unit = d.types.map(t => d.units.indexOf(t.unit));
  const places = new Map<number, { amounts: Float64Array; wholes: Float64Array; limits: Map<number, number> }>(), wholes = new Map<number, Float64Array>(); // these by place and box
  const place = (k: number) => { let p = places.get(k); if (!p) places.set(k, p = { amounts: new Float64Array(nodes), wholes: new Float64Array(units), limits: new Map() }); return p; };
  const limited = (box: number, limit: number, v: number) => { const m = limits[box] ??= new Map(); m.set(limit, (m.get(limit) || 0) + v); };
  for (const { places, rows } of list) {
    each(places, (k, limit, i, till) => {
      const p = place(k);
      p.limits.set(limit, (p.limits.get(limit) || 0) + Math.abs(places[i + 1]));
      for (; i < till; i += 2) p.amounts[places[i]] += places[i + 1];
    });
    each(rows, (box, k, i, till) => {
      const p = place(k);
      for (; i < till; i += 2) {
        const type = rows[i], v = rows[i + 1];
        if (type < sums.length) { sums[type][box] += v; continue; }
        let w = wholes.get(k * n + box);
        if (!w) wholes.set(k * n + box, w = new Float64Array(units));
        w[type - sums.length] += v; p.wholes[type - sums.length] += v;
      }
    });
  }
  const worst = new Map<number, number>(); // by place
  places.forEach((p, k) => { let most = -1; p.limits.forEach((v, limit) => { if (v > most && d.limits[limit]) { most = v; worst.set(k, limit); } }); });
  for (const [key, w] of wholes) {
    const box = key % n, p = place((key - box) / n);
    for (let k = 0; k < nodes; k++) {
      const whole = p.wholes[unit[k]], v = whole > 0 ? p.amounts[k] / whole * w[unit[k]] : 0;
      if (v > 0) { sums[k][box] += v; if (k === d.main) limited(box, worst.get((key - box) / n) ?? -1, v); }
    }
  }
  if (d.main >= nodes) for (const { rows } of list) each(rows, (box, k, i, till) => { for (; i < till; i += 2) if (rows[i] === d.main) limited(box, worst.get(k) ?? -1, rows[i + 1]); });
  for (let i = n - 1; i > 0; i--) {
    const under = d.boxes[i][0];
    for (const s of sums) s[under] += s[i];
    limits[i]?.forEach((v, limit) => limited(under, limit, v));
  }
  const out: Box[] = [], at = new Int32Array(n).fill(-1);
  for (let i = 0; i < n; i++) {
    const [under, name, module, flags] = d.boxes[i];
    if (i > 0 && (at[under] < 0 || !sums.some(s => s[i] > narrowest * s[0]))) continue;
    let limit = "", most = 0;
    limits[i]?.forEach((v, k) => { if (v > most) { most = v; limit = d.limits[k] || ""; } });
    at[i] = out.length;
    out.push(box(d, name, module, limit, flags, under < 0 ? -1 : at[under], sums.map(s => s[i])));
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
  show(boxes: Box[] | null): void {
    this.boxes = boxes || this.whole;
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
