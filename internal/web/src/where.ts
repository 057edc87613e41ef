// The table of places in hierarchical columns: each node of the tree is a column that its parts can be opened beside.

import { Account, Accounts, Explanations, mainOf, parentOf } from "./data";
import { h, id, say } from "./dom";
import { known, percentOf } from "./format";
import { Column, Grid } from "./grid";
import { valueText } from "./tree";

// nameOf is what a scope is called.
export function nameOf(a: Account): string {
  const c = a.scope;
  if (/^[\d.]+ s /.test(c.label || "")) return c.label || ""; // of an interval
  const name = c.line ? (c.file || "").split("/").pop() + ":" + c.line : c.addr && !c.function ? c.addr : c.function || c.label || c.thread || c.process || c.cgroup || c.module || c.kind;
  return c.function && c.addr && c.kind === "instruction" ? name + " " + c.addr : name;
}

export class Where {
  readonly element: HTMLElement;
  readonly grid: Grid;
  private list: Account[];
  private open = new Set<string>();
  private find = "";
  private count = h("span", { class: "hint", role: "status" });
  private opened = false;
  private all: Account[];

  constructor(private d: Accounts, private ex: Explanations, private kind: string, private source: (a: Account) => (() => void) | undefined) {
    this.list = this.all = this.pick();
    const hId = id("h");
    this.grid = new Grid("account of each " + kind);
    const search = h("input", { type: "search", id: "filter-" + kind, placeholder: "part of a name" });
    search.addEventListener("input", () => { this.find = search.value.toLowerCase(); this.filter(); });
    this.grid.onExpand = key => this.expand(key);
    this.element = h("section", { id: "where-" + kind, class: "where", "aria-labelledby": hId }, h("h2", { id: hId }, "Where, by " + kind),
      h("p", { class: "hint" }, "A heading sorts, + opens the parts of a node. ▲ is above its threshold in a hotspot, ? is unreliable. A row opens its code where the page has it."),
      h("div", { class: "tools" }, h("label", { for: "filter-" + kind }, "Filter "), search, " ", this.count), this.grid.element);
    this.grid.set(this.columns());
    this.filter();
    void d.pending?.then(() => { this.all = this.pick(); this.show(null); });
  }

  private pick(): Account[] { return this.kind === "run" ? this.d.accounts : this.d.accounts.filter(a => a.scope.kind !== "run" && a.scope.kind !== "interval"); }

  // like is an account with the nodes that all rows have.
  get like(): Account { return this.d.accounts[0]; }

  // show replaces the accounts; null brings all back.
  show(list: Account[] | null): void {
    this.list = list || this.all;
    this.grid.set(this.columns(), this.found());
  }

  private filter(): void { this.grid.rows(this.found()); }

  // found are the rows that the filter leaves.
  private found(): Uint32Array<ArrayBuffer> {
    const rows: number[] = [];
    this.list.forEach((a, i) => { if (!this.find || (nameOf(a) + "\n" + (a.scope.module || "")).toLowerCase().includes(this.find)) rows.push(i); });
    this.count.textContent = `${rows.length} of ${this.list.length}`;
    return Uint32Array.from(rows);
  }

  private expand(path: string): void {
    if (this.open.has(path)) for (const p of [...this.open]) { if (p === path || p.startsWith(path + ".")) this.open.delete(p); }
    else this.open.add(path);
    this.grid.set(this.columns());
    say(path.split(".").pop() + (this.open.has(path) ? " is open" : " is closed"));
  }

  // columns are those of the place and those of the nodes that are open.
  private columns(): Column[] {
    const l = this.list, out: Column[] = [];
    const hot = (r: number) => !!l[r].scope.hotspot;
    out.push({ key: "name", title: this.kind, width: 240, text: r => (hot(r) ? "● " : "") + nameOf(l[r]), mark: r => hot(r) ? "hot" : "", open: r => this.source(l[r])?.() });
    if (l.some(a => known(a.scope.share))) {
      out.push({ key: "share", title: "share", width: 90, text: r => percentOf(l[r].scope.share), number: r => l[r].scope.share ?? NaN });
      out.push({ key: "samples", title: "samples", width: 80, text: r => String(l[r].scope.share_samples ?? "–"), number: r => l[r].scope.share_samples ?? NaN });
    }
    if (l.some(a => a.scope.module) && this.kind !== "module") out.push({ key: "module", title: "module", width: 140, text: r => l[r].scope.module || "" });
    const nodes = mainOf(this.d.accounts[0]?.nodes || []);
    const some = new Set(nodes.map(n => parentOf(n.path)));
    const roots = nodes.filter(n => parentOf(n.path) === "");
    if (roots.length === 1 && some.has(roots[0].path)) this.always(roots[0].path);
    nodes.forEach(n => {
      const i = (this.d.accounts[0]?.nodes || []).indexOf(n);
      const parent = parentOf(n.path);
      if (parent !== "" && !this.open.has(parent)) return;
      const at = (r: number) => { const row = l[r].nodes; return row[i]?.path === n.path ? row[i] : row.find(x => x.path === n.path); };
      out.push({ key: n.path, title: n.name, width: 110, level: n.path.split(".").length, parts: some.has(n.path), expanded: this.open.has(n.path),
        text: r => { const x = at(r); return x ? valueText(this.ex, this.d.model, x) + (x.reliable || !known(x.value) ? "" : " ?") + (x.flagged && hot(r) ? " ▲" : "") : "–"; },
        number: r => at(r)?.value ?? NaN,
        mark: r => { const x = at(r); return !x || !x.reliable ? "doubtful" : x.flagged && hot(r) ? "flagged" : ""; },
        why: r => { const x = at(r); return !x ? "" : !known(x.value) ? l[r].missing.find(m => m.node === n.path)?.why || "not known" : !x.reliable ? "unreliable: " + (x.doubt || "") : x.flagged && hot(r) ? "above its threshold in a hotspot" : ""; } });
    });
    return out;
  }

  // always opens the parts of the only root once.
  private always(path: string): void {
    if (!this.opened) { this.opened = true; this.open.add(path); }
  }
}
