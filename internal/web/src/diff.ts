// Two sets of runs: the trees side by side, the parts that add up to the difference, and what moved.

import { Accounts, Document, Explanations, Head, Node, parentOf } from "./data";
import { clean, clear, fit, h, id, s } from "./dom";
import { fixed, known, trim } from "./format";
import { Column, Grid } from "./grid";
import { Tree } from "./tree";

interface Change { node?: string; parent?: string; place?: string; module?: string; old_module?: string; old?: number; new?: number; change?: number; relative?: number; low?: number; high?: number; p?: number; effect?: number; verdict: string; samples?: number[] }

export interface Diff extends Head, Document {
  what?: string; unit: string; per: string; by: string; basis?: string; old: { name: string; runs: number }; new: { name: string; runs: number };
  total: Change; nodes: Change[]; places?: Change[]; notes?: string[];
}

// signed is a change with its sign.
export function signed(v: number | undefined): string { return known(v) ? (v > 0 ? "+" : "") + trim(v) : "–"; }

// percentChange is a relative change.
function percentChange(v: number | undefined): string { return known(v) ? (v > 0 ? "+" : "") + fixed(v * 100, 2) + " %" : "–"; }

// paths are the nodes' paths, as the method has them.
function paths(d: Diff, ex: Explanations): Map<Change, string> {
  const out = new Map<Change, string>(), all = ex.method(d.model)?.nodes || [];
  for (const c of d.nodes) {
    const m = all.find(n => n.name === c.node && (parentOf(n.path).split(".").pop() || "") === (c.parent || ""));
    out.set(c, m?.path || (c.parent ? c.parent + "." : "") + c.node);
  }
  return out;
}

export function diffViews(d: Diff, ex: Explanations): HTMLElement[] {
  const hId = id("h"), unit = `${d.unit} per ${d.per}`;
  const first = h("section", { id: "what", "aria-labelledby": hId }, h("h2", { id: hId }, "What changed"),
    h("p", { class: "facts" }, clean(`${d.what || d.unit}, ${d.old.name} (${d.old.runs} runs) and ${d.new.name} (${d.new.runs} runs), on ${d.cpu.name}, ${d.model.name} ${d.model.version}`)),
    h("p", { class: "verdict" }, h("strong", {}, d.total.verdict), ": ", h("span", { class: "number", "data-key": "change" }, signed(d.total.change)), " " + unit + ", ", h("span", { class: "number" }, percentChange(d.total.relative)),
      known(d.total.low) ? `; 95 % interval ${signed(d.total.low)} to ${signed(d.total.high)}` : "", known(d.total.p) ? `; p ${trim(d.total.p)}` : ""),
    h("p", {}, `old ${trim(d.total.old)}, new ${trim(d.total.new)} ${unit}`), d.notes?.length ? h("ul", { class: "notes" }, ...d.notes.map(n => h("li", {}, clean(n, 1000)))) : null);
  const out: HTMLElement[] = [first];
  if (d.nodes.length) out.push(new Waterfall(d).element, trees(d, ex), changes(d, d.nodes, "nodes", "Nodes"));
  if (d.places?.length) out.push(changes(d, d.places, "places", "What moved, by " + d.by));
  return out;
}

// trees are the two trees side by side, with amounts for each unit of work.
function trees(d: Diff, ex: Explanations): HTMLElement {
  const at = paths(d, ex), side = (key: "old" | "new") => {
    const total = d.total[key] || 1;
    const nodes: Node[] = d.nodes.filter(c => known(c[key])).map(c => ({ path: at.get(c) || "", name: c.node || "", level: (at.get(c) || "").split(".").length, unit: unitText(d), value: c[key] as number, together: true, reliable: c.verdict !== "cannot tell", doubt: c.verdict === "cannot tell" ? "it cannot be told from chance" : undefined, flagged: c.verdict === "more" || c.verdict === "less" }));
    const doc = { ...d, accounts: [] } as unknown as Accounts;
    const a = { scope: { kind: "run", label: d[key].name }, nodes, bottleneck: [], audit: [], missing: [], counts: [] };
    return new Tree(doc, a, ex, `${key === "old" ? "Old" : "New"}: ${trim(total)} ${unitText(d)}`, "tree-" + key, Math.max(d.total.old || 0, d.total.new || 0)).element;
  };
  return h("div", { class: "two", id: "trees" }, side("old"), side("new"));
}

function unitText(d: Diff): string { return `${d.unit}/${d.per}`; }

// changes is a table of changes.
function changes(d: Diff, list: Change[], name: string, title: string): HTMLElement {
  const grid = new Grid(title), hId = id("h");
  const text = (c: Change) => c.node || c.place || c.module || "";
  const number = (key: "old" | "new" | "change" | "low" | "high" | "p", title: string, show: (v: number | undefined) => string): Column => ({ key, title, width: 110, text: r => show(list[r][key]), number: r => list[r][key] ?? NaN });
  grid.set([{ key: "name", title: name === "nodes" ? "node" : d.by, width: 260, text: r => text(list[r]) },
    ...(name === "places" ? [{ key: "module", title: "module", width: 140, text: (r: number) => list[r].module || "" }] : []),
    number("old", "old", trim), number("new", "new", trim), number("change", "change", signed),
    { key: "relative", title: "relative", width: 100, text: r => percentChange(list[r].relative), number: r => list[r].relative ?? NaN },
    { key: "verdict", title: "verdict", width: 110, text: r => (list[r].verdict === "more" ? "▲ " : list[r].verdict === "less" ? "▼ " : "") + list[r].verdict, mark: r => list[r].verdict === "cannot tell" ? "doubtful" : list[r].verdict === "more" || list[r].verdict === "less" ? "flagged" : "" },
    number("low", "from", signed), number("high", "to", signed), number("p", "p", trim)]);
  grid.rows(Uint32Array.from(list.keys()));
  return h("section", { id: name, "aria-labelledby": hId }, h("h2", { id: hId }, title), grid.element);
}

// A Waterfall goes from the old total over the changes of the highest nodes to the new one.
class Waterfall {
  readonly element: HTMLElement;
  private svg = s("svg", { class: "waterfall", role: "img" });

  constructor(private d: Diff) {
    const hId = id("h");
    this.svg.setAttribute("aria-label", "old " + trim(d.total.old) + this.steps().map(c => `, ${c.node} ${signed(c.change)}`).join("") + ", new " + trim(d.total.new));
    this.element = h("section", { id: "waterfall", "aria-labelledby": hId }, h("h2", { id: hId }, "What adds up to the difference"), h("div", { class: "plot" }, this.svg));
    fit(this.svg, w => this.draw(w));
  }

  // steps are the changes of the highest nodes.
  private steps(): Change[] {
    const roots = this.d.nodes.filter(c => !c.parent);
    const list = roots.length === 1 ? this.d.nodes.filter(c => c.parent === roots[0].node) : roots;
    return (list.length ? list : roots).filter(c => known(c.change));
  }

  private draw(width: number): void {
    const d = this.d, steps = this.steps(), row = 26, label = Math.min(190, width * 0.36), room = width - label - 90;
    const rows: { name: string; from: number; to: number; text: string; tone: string }[] = [{ name: "old", from: 0, to: d.total.old || 0, text: trim(d.total.old), tone: "all" }];
    let at = d.total.old || 0;
    for (const c of steps) {
      const to = at + (c.change || 0);
      rows.push({ name: c.node || "", from: at, to, text: signed(c.change) + (c.verdict === "cannot tell" ? " ?" : ""), tone: (c.change || 0) > 0 ? "front" : "back" });
      at = to;
    }
    const left = (d.total.new || 0) - at;
    if (Math.abs(left) > 1e-9 * Math.abs(d.total.new || 1)) rows.push({ name: "elsewhere", from: at, to: at + left, text: signed(left), tone: "other" });
    rows.push({ name: "new", from: 0, to: d.total.new || 0, text: trim(d.total.new), tone: "all" });
    const inner = rows.slice(1, -1).flatMap(r => [r.from, r.to]), most = Math.max(...rows.flatMap(r => [r.from, r.to])), least = Math.min(...inner, d.total.old || 0, d.total.new || 0);
    const base = least > 0.5 * most ? least - (most - least) * 0.5 : 0; // the axis is cut where all bars are long
    const x = (v: number) => label + room * (Math.max(v, base) - base) / (most - base || 1);
    clear(this.svg);
    this.svg.setAttribute("height", String(rows.length * row + 22));
    this.svg.setAttribute("width", String(width));
    rows.forEach((r, i) => {
      const x0 = Math.min(x(r.from), x(r.to)), w = Math.max(1, Math.abs(x(r.to) - x(r.from)));
      this.svg.append(s("g", { class: r.tone }, s("rect", { class: "bar", x: x0, y: i * row + 3, width: w, height: row - 8 })), s("text", { x: label - 6, y: i * row + 17, "text-anchor": "end" }, clean(r.name)), s("text", { class: "value", x: x0 + w + 5, y: i * row + 17 }, r.text));
    });
    this.svg.append(s("text", { x: label, y: rows.length * row + 14 }, `${unitText(d)}${base > 0 ? `, from ${trim(base)}` : ""}`));
  }
}
