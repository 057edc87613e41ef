// A grid of many rows, of which those in view are drawn. It is used by mouse, by keyboard and with a screen reader.

import { clean, clear, h, id, say, paper, printing } from "./dom";

export interface Column {
  key: string;
  title: string;
  text(row: number): string;
  number?(row: number): number; // that rows are sorted by; NaN is last
  mark?(row: number): string; // classes of the cell
  why?(row: number): string; // shown on hover, and read out
  open?(row: number): void;
  width: number;
  parts?: boolean; // it can be expanded
  expanded?: boolean;
  level?: number;
}

// breakable divides a name where a line may break.
function breakable(name: string): (string | Node)[] { return name.split(/(?<=_)/).flatMap((t, i) => i > 0 ? [document.createElement("wbr"), t] : [t]); }

const rowHeight = 26;
const more = 8; // rows drawn outside the view
const printed = 200; // rows on paper
const widest = 640; // dots that the first column grows to where there is room

export class Grid {
  readonly element = h("div", { class: "grid", role: "treegrid", tabindex: 0 });
  private head = h("div", { role: "row", class: "head", "aria-rowindex": 1 });
  private spacer = h("div", { class: "spacer", role: "rowgroup" });
  private columns: Column[] = [];
  private order = new Uint32Array(0);
  private all = 0;
  private sorted: { key: string; down: boolean } | null = null;
  private at = { row: -1, column: 0 };
  private name = id("g");
  private frame = 0;

  onExpand: (key: string) => void = () => { /* set by the owner */ };

  constructor(label: string) {
    this.element.setAttribute("aria-label", label);
    this.element.append(this.head, this.spacer);
    this.element.addEventListener("scroll", () => { if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); }); });
    this.element.addEventListener("keydown", e => this.key(e));
    this.spacer.addEventListener("click", e => this.click(e));
    printing(on => this.print(on));
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(this.element);
  }

  // set replaces the columns, and where others are given the rows.
  set(columns: Column[], rows?: Uint32Array<ArrayBuffer>): void {
    this.columns = columns;
    if (rows) { this.order = rows; this.all = rows.length; }
    this.at.column = Math.min(this.at.column, columns.length - 1);
    this.element.setAttribute("aria-colcount", String(columns.length));
    this.header();
    if (rows) this.rows(rows);
    else this.draw(true);
  }

  // rows replaces the rows: numbers that columns know.
  rows(list: Uint32Array<ArrayBuffer>): void {
    this.order = list;
    this.all = list.length;
    this.at.row = Math.min(this.at.row, this.all - 1);
    this.element.setAttribute("aria-rowcount", String(this.all + 1));
    this.resort();
  }

  get length(): number { return this.all; }

  // shown returns the rows in their order.
  get shown(): Uint32Array { return this.order; }

  // sort sorts by a column: down first, then up.
  sort(key: string): void {
    this.sorted = { key, down: this.sorted?.key === key ? !this.sorted.down : true };
    this.resort();
    this.header();
    const c = this.columns.find(c => c.key === key);
    say(`sorted by ${c?.title}, ${this.sorted.down ? "largest first" : "smallest first"}`);
  }

  private resort(): void {
    const c = this.columns.find(c => c.key === this.sorted?.key);
    if (c && this.sorted) {
      const sign = this.sorted.down ? -1 : 1;
      if (c.number) {
        const values = new Map<number, number>();
        for (const r of this.order) values.set(r, c.number(r));
        const v = (r: number) => values.get(r) as number;
        this.order.sort((a, b) => { const x = v(a), y = v(b); return Number.isNaN(x) ? (Number.isNaN(y) ? a - b : 1) : Number.isNaN(y) ? -1 : (x - y) * sign || a - b; });
      } else {
        const texts = new Map<number, string>();
        for (const r of this.order) texts.set(r, c.text(r));
        const t = (r: number) => texts.get(r) as string;
        this.order.sort((a, b) => (t(a) < t(b) ? 1 : t(a) > t(b) ? -1 : 0) * sign || a - b);
      }
    }
    this.draw(true);
  }

  private header(): void {
    clear(this.head);
    const [first, ...others] = this.columns.map(c => c.width), rest = others.reduce((t, w) => t + w, 0);
    this.element.style.setProperty("--columns", `max(${first}px, min(${widest}px, 100cqw - ${rest}px)) ` + others.map(w => w + "px").join(" "));
    this.columns.forEach((c, i) => {
      const on = this.sorted?.key === c.key;
      const sort = h("button", { type: "button", class: "sort", "data-sort": c.key, tabindex: -1, title: "sort by " + c.title }, ...breakable(clean(c.title)), on ? (this.sorted?.down ? " ▼" : " ▲") : "");
      sort.addEventListener("click", () => this.sort(c.key));
      const cell = h("div", { role: "columnheader", class: "cell l" + (c.level || 0) + (c.number ? " number" : ""), "aria-colindex": i + 1, id: `${this.name}-h-${i}`, "aria-sort": on ? (this.sorted?.down ? "descending" : "ascending") : "none" }, sort);
      if (c.parts) {
        const b = h("button", { type: "button", class: "expand", "data-expand": c.key, tabindex: -1, "aria-expanded": c.expanded ? "true" : "false", "aria-label": (c.expanded ? "close " : "open ") + "the parts of " + c.title }, c.expanded ? "−" : "+");
        b.addEventListener("click", () => this.onExpand(c.key));
        cell.append(b);
      }
      this.head.append(cell);
    });
  }

  private from = -1;
  private to = -1;

  private paper = false;

  // print draws the first rows for paper, in its width, or goes back to those in view.
  private print(on: boolean): void {
    this.paper = on;
    const width = this.columns.reduce((t, c) => t + c.width, 0), rest = this.all - printed;
    this.element.style.zoom = on ? String(Math.min(1, paper / width)) : "";
    this.element.parentElement?.querySelector(".rest")?.remove();
    if (on && rest > 0) this.element.after(h("p", { class: "rest" }, `These are the first ${printed} of ${this.all} rows.`));
    this.draw(true);
  }

  // draw draws the rows in view.
  draw(anew = false): void {
    if (this.paper) {
      clear(this.spacer);
      this.from = 0; this.to = Math.min(this.all, printed);
      this.spacer.style.height = this.to * rowHeight + "px";
      for (let i = 0; i < this.to; i++) this.spacer.append(this.row(i));
      return;
    }
    const height = this.element.clientHeight, top = this.element.scrollTop;
    const from = Math.max(0, Math.floor(top / rowHeight) - more), to = Math.min(this.all, Math.ceil((top + height) / rowHeight) + more);
    this.spacer.style.height = this.all * rowHeight + "px";
    if (!anew && from === this.from && to === this.to) return;
    if (anew || from >= this.to || to <= this.from) {
      clear(this.spacer);
      for (let i = from; i < to; i++) this.spacer.append(this.row(i));
    } else { // rows that stay in view are kept
      for (let i = this.from; i < from; i++) this.spacer.firstChild?.remove();
      for (let i = to; i < this.to; i++) this.spacer.lastChild?.remove();
      for (let i = Math.min(this.from, to) - 1; i >= from; i--) this.spacer.prepend(this.row(i));
      for (let i = Math.max(this.to, from); i < to; i++) this.spacer.append(this.row(i));
    }
    this.from = from; this.to = to;
    this.focus();
  }

  private row(i: number): HTMLElement {
    const r = this.order[i];
    const e = h("div", { role: "row", class: "row", "aria-rowindex": i + 2, "data-row": r });
    e.style.top = i * rowHeight + "px";
    this.columns.forEach((c, k) => {
      const why = c.why?.(r), text = c.text(r);
      const cell = h("div", { role: k === 0 ? "rowheader" : "gridcell", class: "cell " + (c.number ? "number " : "") + (c.mark?.(r) || ""), "aria-colindex": k + 1, id: `${this.name}-${i}-${k}`, "data-key": c.key, title: why || (c.number ? undefined : clean(text)) }, clean(text));
      if (why) cell.append(h("span", { class: "away" }, ", " + why));
      if (c.open) cell.classList.add("link");
      e.append(cell);
    });
    return e;
  }

  // focus marks the active cell.
  private focus(): void {
    for (const e of this.element.querySelectorAll(".active")) e.classList.remove("active");
    const e = this.at.row < 0 ? document.getElementById(`${this.name}-h-${this.at.column}`) : document.getElementById(`${this.name}-${this.at.row}-${this.at.column}`);
    if (!e) { this.element.removeAttribute("aria-activedescendant"); return; }
    e.classList.add("active");
    this.element.setAttribute("aria-activedescendant", e.id);
  }

  private click(e: Event): void {
    const cell = (e.target as Element).closest<HTMLElement>(".cell"), row = cell?.closest<HTMLElement>(".row");
    if (!cell || !row) return;
    this.at = { row: Number(row.getAttribute("aria-rowindex")) - 2, column: Number(cell.getAttribute("aria-colindex")) - 1 };
    this.focus();
    this.columns[this.at.column].open?.(Number(row.dataset.row));
  }

  private key(e: KeyboardEvent): void {
    const page = Math.max(1, Math.floor(this.element.clientHeight / rowHeight) - 2), c = this.columns[this.at.column];
    switch (e.key) {
      case "ArrowDown": this.at.row++; break;
      case "ArrowUp": this.at.row--; break;
      case "ArrowLeft": this.at.column--; break;
      case "ArrowRight": this.at.column++; break;
      case "PageDown": this.at.row += page; break;
      case "PageUp": this.at.row -= page; break;
      case "Home": this.at.row = e.ctrlKey ? 0 : this.at.row; if (!e.ctrlKey) this.at.column = 0; break;
      case "End": this.at.row = e.ctrlKey ? this.all - 1 : this.at.row; if (!e.ctrlKey) this.at.column = this.columns.length - 1; break;
      case "Enter":
        if (this.at.row < 0) this.sort(c.key);
        else if (c.open) c.open(this.order[this.at.row]);
        break;
      case "+": case "-": case " ": if (c.parts) this.onExpand(c.key); break;
      default: return;
    }
    e.preventDefault();
    this.at.row = Math.max(-1, Math.min(this.all - 1, this.at.row));
    this.at.column = Math.max(0, Math.min(this.columns.length - 1, this.at.column));
    const top = this.at.row * rowHeight, head = this.head.offsetHeight, view = this.element.clientHeight - head;
    if (this.at.row >= 0 && top < this.element.scrollTop) this.element.scrollTop = top;
    if (this.at.row >= 0 && top + rowHeight > this.element.scrollTop + view) this.element.scrollTop = top + rowHeight - view;
    this.draw();
    this.focus();
    this.element.querySelector(".active")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
