// The tree as an icicle: the width of a node is its share.

import { Account, Accounts, Explanations, Model, Node, mainOf, parentOf } from "./data";
import { clean, clear, fit, h, id, s, say } from "./dom";
import { coverage, fixed, known, percentOf, trim } from "./format";

const rowHeight = 30;
const narrow = 1.5; // dots below which a node is not drawn

// valueText is a node's value as page.Figure writes it.
export function valueText(ex: Explanations, m: Model, n: { path: string; unit: string; section?: string; value: number | null }): string {
  if (!known(n.value)) return "–";
  if (ex.share(m, n) && !n.unit.includes("/")) return fixed(n.value * 100, 1) + " %";
  if (n.unit === "cycles/instruction") return fixed(n.value, 4);
  return trim(n.value);
}

// otherUnit is what a node's share is of, if that is not what those of the tree are of.
export function otherUnit(ex: Explanations, m: Model, n: Node): string {
  return ex.share(m, n) && !n.unit.includes("/") && n.unit !== ex.method(m)?.unit ? " of " + n.unit : "";
}

// A Box is a node where it is drawn.
interface Box { node: Node; x: number; w: number; row: number; parent: Box | null; below: Box[]; squeezed: boolean }

// boxesOf lays nodes out in a width of 1. Children that are more than their parent are
// squeezed into it.
export function boxesOf(nodes: Node[], share: (n: Node) => boolean, whole = 0): Box[] {
  const boxes: Box[] = [], byPath = new Map<string, Box>(), roots: Box[] = [];
  for (const node of mainOf(nodes)) {
    if (!known(node.value)) continue;
    const parent = byPath.get(parentOf(node.path)) || null;
    if (!parent && node.path.includes(".")) continue;
    const b: Box = { node, x: 0, w: Math.max(0, node.value), row: parent ? parent.row + 1 : 0, parent, below: [], squeezed: false };
    byPath.set(node.path, b);
    boxes.push(b);
    (parent ? parent.below : roots).push(b);
  }
  const sum = (list: Box[]) => list.reduce((t, b) => t + b.w, 0);
  const scale = whole || (roots.length > 0 && share(roots[0].node) ? Math.max(1, sum(roots)) : sum(roots)) || 1;
  const place = (list: Box[], x: number, room: number) => {
    const total = sum(list), squeeze = total > room && total > 0 ? room / total : 1;
    for (const b of list) {
      b.squeezed = squeeze < 0.995;
      b.w *= squeeze; b.x = x;
      x += b.w;
      for (const c of b.below) c.w /= scale;
      place(b.below, b.x, b.w);
    }
  };
  for (const b of roots) b.w /= scale;
  place(roots, 0, 1);
  return boxes;
}

const named: [RegExp, string][] = [[/^front/i, "front"], [/^bad|specul|mispred|non_ret/i, "bad"], [/^back|stall/i, "back"], [/^retir|^complet|^work/i, "work"]];

// tones are the colours of the parts of a tree, told apart by the colour-blind and by their lightness. Of a tree with one root the parts are those below it.
export function tones(paths: string[]): (path: string) => string {
  const single = new Set(paths.map(p => p.split(".")[0])).size === 1, part = (path: string) => path.split(".")[single ? 1 : 0];
  const parts = [...new Set(paths.map(part))].filter(p => p !== undefined), by = new Map<string, string>();
  for (const p of parts) for (const [re, t] of named) if (!by.has(p) && re.test(p)) by.set(p, t);
  const free = ["front", "back", "work", "bad"].filter(t => ![...by.values()].includes(t));
  for (const p of parts) if (!by.has(p)) by.set(p, free.shift() || "other");
  return path => part(path) === undefined ? "all" : by.get(part(path)) || "other";
}

export class Tree {
  readonly element: HTMLElement;
  private svg = s("svg", { class: "icicle", role: "tree", "aria-label": "tree" });
  private detail = h("div", { class: "detail", "aria-live": "polite" });
  private boxes: Box[] = [];
  private zoomed: Box | null = null;
  private active = "";
  private width = 0;
  private account!: Account;
  private marks = new Map<string, SVGGElement>();
  private rows = h("tbody");
  private tools = h("div", {}); // and the picture: hidden where there is nothing to draw

  constructor(private d: Accounts, a: Account, private ex: Explanations, heading = "Tree", name = "tree", private total = 0) {
    const back = h("button", { type: "button", class: "whole" }, "Whole tree");
    back.addEventListener("click", () => this.zoom(null));
    const caption = h("p", { class: "hint" }, "Width is the share. Hatched nodes are uncertain. Click or Enter opens a node and zooms; arrow keys move; Escape shows all.");
    const table = h("details", { class: "numbers" }, h("summary", {}, "All nodes with their numbers"),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "nodes: " + heading }, h("table", { class: "nodes" }, h("thead", {}, h("tr", {},
        ...["Node", "Value", "Unit", "Error", "Coverage", "Remark"].map(t => h("th", { scope: "col" }, t)))), this.rows)));
    const hId = id("h");
    this.tools.append(caption, h("div", { class: "tools" }, back), h("div", { class: "plot" }, this.svg));
    this.element = h("section", { id: name, "aria-labelledby": hId }, h("h2", { id: hId }, heading), this.tools, this.detail, table);
    this.svg.addEventListener("keydown", e => this.key(e));
    this.show(a);
    fit(this.svg, w => { this.width = w; this.draw(); });
  }

  // show draws another account.
  show(a: Account): void {
    this.account = a;
    this.boxes = boxesOf(a.nodes, n => this.ex.share(this.d.model, n), this.total);
    this.zoomed = this.boxes.find(b => b.node.path === this.zoomed?.node.path) || null;
    this.tools.hidden = this.boxes.length === 0;
    this.list();
    this.draw();
    const end = a.bottleneck[a.bottleneck.length - 1];
    this.open(this.active && a.nodes.some(n => n.path === this.active) ? this.active : end || "");
  }

  // list fills the table of all nodes.
  private list(): void {
    const why = new Map(this.account.missing.map(m => [m.node, m.why]));
    const on = new Set(this.account.bottleneck);
    clear(this.rows);
    for (const n of this.account.nodes) {
      const share = this.ex.share(this.d.model, n);
      const remark = [on.has(n.path) ? "bottleneck path" : "", n.flagged ? "flagged" : "", n.reliable || !known(n.value) ? "" : "uncertain: " + (n.doubt || ""), n.assumed?.length ? "taken: " + n.assumed.join(", ") : "",
        n.expected?.standing && n.expected.standing !== "within" ? `${n.expected.standing} ${percentOf(n.expected.low)}–${percentOf(n.expected.high)}` : "", why.get(n.path) || ""].filter(t => t).join("; ");
      const cell = (key: string, text: string) => h("td", { class: "number", "data-key": key }, text);
      this.rows.append(h("tr", { "data-node": n.path, class: (n.reliable ? "" : "doubtful") + (known(n.value) ? "" : " unknown") }, h("th", { scope: "row", class: "l" + Math.min(8, n.path.split(".").length) }, h("button", { type: "button", class: "link", "data-go": n.path }, n.name)),
        cell("value", this.text(n)), h("td", { "data-key": "unit" }, (share ? "of " : "") + n.unit), cell("error", known(n.error) ? this.text({ ...n, value: n.error }) : "–"),
        cell("coverage", known(n.coverage) ? coverage(n.coverage) : "–"), h("td", {}, clean(remark, 1000))));
    }
  }

  private text(n: { path: string; unit: string; section?: string; value: number | null }): string { return valueText(this.ex, this.d.model, n); }

  private draw(): void {
    if (!this.width) return;
    const from = this.zoomed ? this.zoomed.x : 0, scale = this.width / (this.zoomed ? this.zoomed.w || 1 : 1);
    const tone = tones(mainOf(this.account.nodes).map(n => n.path));
    const on = new Set(this.account.bottleneck);
    clear(this.svg);
    this.marks.clear();
    this.svg.append(s("defs", {}, s("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("line", { x1: 0, y1: 0, x2: 0, y2: 6, class: "hatch" }))));
    let deepest = 0;
    for (const b of this.boxes) {
      let x = (b.x - from) * scale, w = b.w * scale;
      if (x < 0) { w += x; x = 0; }
      w = Math.min(w, this.width - x);
      if (w < narrow) continue;
      deepest = Math.max(deepest, b.row);
      const n = b.node, text = n.name + " " + this.text(n) + (known(n.error) ? " ± " + this.text({ ...n, value: n.error }) : "") + otherUnit(this.ex, this.d.model, n);
      const g = s("g", { class: "box " + tone(n.path) + (on.has(n.path) ? " path" : "") + (n.reliable ? "" : " doubtful"), role: "treeitem", tabindex: -1,
        "aria-level": b.row + 1, "aria-label": text + (n.reliable ? "" : ", uncertain") + (on.has(n.path) ? ", bottleneck path" : ""), "data-node": n.path,
        "aria-expanded": b.below.length ? "true" : undefined, "aria-selected": n.path === this.active ? "true" : "false" },
        s("title", {}, text + (b.squeezed ? "; drawn narrower: siblings add up to more than their parent" : "")), s("rect", { x, y: b.row * rowHeight, width: w, height: rowHeight - 1 }));
      if (!n.reliable) g.append(s("rect", { x, y: b.row * rowHeight, width: w, height: rowHeight - 1, fill: "url(#hatch)", class: "over" }));
      if (w > 26) g.append(s("foreignObject", { x, y: b.row * rowHeight, width: w, height: rowHeight - 1 }, h("div", { class: "label" }, text)));
      g.addEventListener("click", () => { this.open(n.path); this.zoom(b === this.zoomed ? b.parent : b); });
      this.svg.append(g);
      this.marks.set(n.path, g);
    }
    const first = this.marks.get(this.active) || this.marks.values().next().value;
    first?.setAttribute("tabindex", "0");
    this.svg.setAttribute("height", String((deepest + 1) * rowHeight));
    this.svg.setAttribute("width", String(this.width));
  }

  zoom(b: Box | null): void {
    this.zoomed = b;
    const had = this.svg.contains(document.activeElement);
    this.draw();
    if (had) this.marks.get(this.active)?.focus();
    say(b ? b.node.name + " fills the width" : "the whole tree");
  }

  // open shows what a node means.
  open(path: string): void {
    this.active = path;
    for (const [p, g] of this.marks) { g.setAttribute("tabindex", p === path ? "0" : "-1"); g.setAttribute("aria-selected", String(p === path)); }
    const n = this.account.nodes.find(n => n.path === path);
    this.detail.hidden = !n;
    clear(this.detail);
    if (n) this.detail.append(...this.explain(n));
  }

  private explain(n: Node): Element[] {
    const m = this.ex.node(this.d.model, n.path), out: Element[] = [];
    out.push(h("h3", {}, n.path.split(".").join(" › ")));
    out.push(h("p", {}, h("span", { class: "number" }, this.text(n)), known(n.error) ? " ± " + this.text({ ...n, value: n.error }) : "", otherUnit(this.ex, this.d.model, n), n.assumed?.length ? " (taken: " + n.assumed.join(", ") + ")" : "", " ", m?.title || "",
      n.reliable ? "" : ". Uncertain: " + (n.doubt || this.account.missing.find(x => x.node === n.path)?.why || "")));
    if (m?.about) out.push(...m.about.split("\n\n").map(t => h("p", {}, t)));
    if (n.expected) out.push(h("p", {}, `Expected: ${percentOf(n.expected.low)} to ${percentOf(n.expected.high)}${n.expected.standing ? "; it is " + n.expected.standing : ""}.`));
    if (m?.formula) out.push(h("p", {}, h("b", {}, "Formula: "), h("code", {}, m.formula.replace(/\s+/g, " "))), this.inputs(m.formula));
    if (m?.threshold) out.push(h("p", {}, h("b", {}, "Flagged if: "), h("code", {}, m.threshold.replace(/\s+/g, " "))));
    for (const [title, list] of [["Causes", m?.causes], ["Try", m?.try]] as const) if (list?.length) out.push(h("p", {}, h("b", {}, title)), h("ul", {}, ...list.map(t => h("li", {}, t))));
    if (n.linked?.length) out.push(h("p", {}, h("b", {}, "The same from other sides: "), n.linked.join(", ")));
    return out;
  }

  // inputs lists the numbers that a formula names.
  private inputs(formula: string): Element {
    const words = [...new Set(formula.match(/[A-Za-z_][\w.:]*/g) || [])], list = h("ul", { class: "inputs" });
    const method = this.ex.method(this.d.model);
    for (const w of words) {
      const count = this.account.counts.find(c => c.event === w || c.as === w) ||
        this.account.counts.find(c => method?.inputs?.find(i => i.name === w)?.events.includes(c.event));
      const node = this.account.nodes.find(n => n.name === w), param = this.d.model.params?.[w] ?? method?.parameters?.find(p => p.name === w)?.value;
      if (count) list.append(h("li", {}, w, " = ", h("span", { class: "number" }, trim(count.value))));
      else if (node) list.append(h("li", {}, w, " = ", h("span", { class: "number" }, this.text(node))));
      else if (known(param)) list.append(h("li", {}, w, " = ", h("span", { class: "number" }, trim(param))));
    }
    return list;
  }

  private key(e: KeyboardEvent): void {
    const at = this.boxes.find(b => b.node.path === this.active) || this.boxes[0];
    if (!at) return;
    const beside = (step: number) => { const row = this.boxes.filter(b => b.row === at.row && this.marks.has(b.node.path)); return row[row.indexOf(at) + step]; };
    let to: Box | undefined | null;
    switch (e.key) {
      case "ArrowDown": to = at.below.find(b => this.marks.has(b.node.path)); break;
      case "ArrowUp": to = at.parent; break;
      case "ArrowLeft": to = beside(-1); break;
      case "ArrowRight": to = beside(1); break;
      case "Home": to = this.boxes.find(b => this.marks.has(b.node.path)); break;
      case "Enter": case " ": this.zoom(at); e.preventDefault(); return;
      case "Escape": this.zoom(null); e.preventDefault(); return;
      default: return;
    }
    e.preventDefault();
    if (!to) return;
    this.open(to.node.path);
    this.marks.get(to.node.path)?.focus();
  }
}
