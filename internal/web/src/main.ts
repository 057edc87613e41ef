// The page: documents in, views out.

import { Annotation, Code, CodeIntervals } from "./code";
import { Account, Accounts, Document, Explanations, accountsOf, holding, load } from "./data";
import { Diff, diffViews } from "./diff";
import { clean, clear, h, printing, say } from "./dom";
import { Flame, StackIntervals, Stacks, together } from "./flame";
import * as format from "./format";
import { known } from "./format";
import { gunzip } from "./inflate";
import { Core, Loops } from "./loops";
import { Tree } from "./tree";
import { About, trust } from "./trust";
import { several, what } from "./what";
import { When, mean, timed } from "./when";
import { Where } from "./where";

function theme(): HTMLElement {
  const b = h("button", { type: "button", id: "theme" }, "Light or dark");
  let kept = "";
  try { kept = localStorage.getItem("cyclestack-theme") || ""; } catch { /* it is not kept */ }
  const root = document.documentElement;
  if (kept) root.dataset.theme = kept;
  b.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("cyclestack-theme", root.dataset.theme); } catch { /* it is not kept */ }
  });
  return b;
}

// chooser opens files as dropping them does.
function chooser(): HTMLElement {
  const input = h("input", { type: "file", multiple: true, id: "open-file" });
  input.addEventListener("change", () => { shown([...(input.files || [])]); });
  return h("label", { for: "open-file" }, "Open ", input);
}

function build(documents: Document[]): Views {
  const page = document.getElementById("page") as HTMLElement;
  clear(page);
  const views = new Views(documents), sections = views.sections;
  const links = h("nav", { "aria-label": "parts of the page" });
  for (const e of sections) links.append(h("a", { href: "#" + e.id }, e.querySelector("h2")?.firstChild?.textContent || e.id));
  page.append(h("header", {}, h("h1", {}, clean(document.title)), h("div", { class: "tools" }, links, theme(), chooser())), h("main", {}, ...sections));
  document.documentElement.classList.add("ready");
  return views;
}

// Views are the views of documents, in the order in which one asks.
class Views {
  readonly sections: HTMLElement[] = [];
  private ex: Explanations;
  private tree: Tree | null = null;
  private places = new Map<string, Where>();

  constructor(documents: Document[]) {
    this.ex = new Explanations(documents);
    const list = accountsOf(documents), about = documents.find(d => d.schema === "cyclestack.page/v1") as About | undefined;
    const first = list.find(d => d.accounts.some(a => a.scope.kind === "run" && a.nodes.length > 0)) || (about?.live ? list[0] : undefined);
    const run = first?.accounts.find(a => a.scope.kind === "run") || (about?.live ? first?.accounts[first.accounts.length - 1] : undefined);
    const alone = run ? undefined : list.find(d => d.accounts.some(a => a.scope.kind === "interval")); // such as those of stat -I
    if (first && run) this.answer(first, run, list);
    if (alone) this.together(alone);
    else if (!run && list[0]?.accounts.length > 1) this.sections.push(several(list[0], list[0].accounts, this.ex, plural(list[0].accounts)));
    for (const d of documents) if (d.schema === "cyclestack.diff/v1") this.sections.push(...diffViews(d as Diff, this.ex));
    const codes = documents.filter(d => d.schema === "cyclestack.annotation/v1") as Annotation[], code = codes.length ? new Code(codes, documents.filter(d => d.schema === "cyclestack.annotation_intervals/v1") as CodeIntervals[]) : null;
    const within = documents.find(d => d.schema === "cyclestack.functions_intervals/v1") as Spread | undefined, overall = first || list[0];
    for (const d of list) this.where(d, code);
    if (code) { this.sections.push(code.element); this.followers.push(code); }
    for (const d of documents) if (d.schema === "cyclestack.core/v1") { const of = new Loops(d as Core, code); this.sections.push(of.element); this.followers.push(of); }
    this.spans = documents.find(d => d.schema === "cyclestack.stacks_intervals/v1") as StackIntervals | undefined;
    for (const d of documents) if (d.schema === "cyclestack.stacks/v1") { const flame = new Flame(d as Stacks); this.flames.push(flame); this.sections.push(flame.element); }
    for (const d of list) if (d.accounts.some(a => a.scope.kind === "interval")) this.when(d, first || alone, within);
    const rows = run || !overall ? [] : alone ? alone.accounts : overall.accounts; // of a page without an account of all
    const shown = run || (rows.length > 1 ? mean(rows) : rows[0]);
    if (overall && shown) {
      const belief = trust(overall, shown, documents, rows.length > 1 ? rows : []);
      this.sections.push(belief);
      this.swaps.push({ now: belief, whole: belief, of: a => trust(overall, a, documents), several: of => trust(overall, mean(of, this.ex.method(overall.model)?.of), documents, of) });
    }
    if (list.some(d => d.accounts.some(a => a.scope.kind === "interval"))) this.mark(within !== undefined, code);
  }

  private followers: { show(chosen: Account[] | null): void }[] = []; // views that follow a selection by themselves
  private flames: Flame[] = [];
  private spans: StackIntervals | undefined;

  // Sections that one interval has of its own. Several share a list of their verdicts, and have no checks in common.
  private swaps: { now: HTMLElement; whole: HTMLElement; of: (a: Account) => HTMLElement; several?: (list: Account[]) => HTMLElement }[] = [];

  private swap(list: Account[]): void {
    for (const s of this.swaps) {
      const next = list.length === 1 ? s.of(list[0]) : list.length > 1 && s.several ? s.several(list) : s.whole;
      if (next !== s.now) { s.now.replaceWith(next); s.now = next; }
    }
  }

  // mark has the views that a selection does not restrict say so.
  private mark(split: boolean, code: Code | null): void {
    const follows: Record<string, boolean> = { what: true, tree: true, times: this.timed, when: true, trust: true, "where-function": split, stacks: this.spans !== undefined, code: code !== null && code.follows, loops: code !== null && code.follows };
    for (const e of this.sections) {
      const restricted = follows[e.id];
      if (!restricted) e.querySelector("h2")?.append(h("span", { class: "unselected" }, " of the whole recording"));
    }
  }

  private course: When | null = null;
  private brushed = false;

  // grown draws what accounts that came since change: the newest is what the tree shows.
  grown(): void {
    this.course?.grown();
    const list = this.course?.accounts;
    if (list && !this.brushed && this.tree) this.tree.show(list[list.length - 1]);
  }

  private run: Account | undefined; // what all of the time is about
  private timed = false; // the threads' time is known in intervals

  // answer is what comes first: the verdict, the tree, and the threads' time.
  private answer(d: Accounts, run: Account, list: Accounts[], verdict = what(d, run, this.ex)): void {
    this.run = run;
    const tree = this.tree = new Tree(d, run, this.ex);
    this.sections.push(verdict, tree.element);
    const listen = (e: HTMLElement) => { e.addEventListener("click", c => { const p = (c.target as HTMLElement).dataset?.go; if (p) tree.open(p); }); return e; };
    this.swaps.push({ now: listen(verdict), whole: verdict, of: a => listen(what(d, a, this.ex)), several: list => listen(several(d, list, this.ex)) });
    const t = run.times;
    if (!t) return;
    const times = new Tree({ ...d, model: t.model }, timed(run), this.ex, "Time of threads", "times");
    this.sections.push(times.element);
    this.timed = list.some(x => x.accounts.some(a => a.scope.kind === "interval" && a.times));
    if (this.timed) this.followers.push({ show: chosen => times.show(chosen ? mean(chosen.map(timed)) : timed(this.run || run)) });
  }

  // together is what comes first where there are only intervals: their verdicts, and the tree of all.
  private together(d: Accounts): void {
    const all = () => d.accounts.filter(a => a.scope.kind === "interval"), of = this.ex.method(d.model)?.of;
    const whole = (): Account => { const list = all(), t = list[0].times; return { ...mean(list, of), times: t && { ...t, ...mean(list.map(timed)) } }; };
    const verdict = () => all().length > 1 ? several(d, all(), this.ex, "intervals") : what(d, all()[0], this.ex);
    this.answer(d, whole(), [d], verdict());
    void d.pending?.then(() => { this.run = whole(); this.swaps[0].whole = verdict(); if (!this.brushed) this.choose(d, d, null, of); });
  }

  // where are the tables of a document's accounts, one for each kind but intervals.
  private where(d: Accounts, code: Code | null): void {
    const others = d.accounts.filter(a => a.scope.kind !== "run" && a.scope.kind !== "interval"), kind = others[0]?.scope.kind;
    const runs = d.accounts.filter(a => a.scope.kind === "run");
    if (runs.length > 1) this.sections.push(new Where({ ...d, accounts: d.accounts }, this.ex, "run", () => undefined).element);
    if (!kind || this.places.has(kind)) return;
    const table = new Where(d, this.ex, kind, a => code?.opener(a.scope.function, a.scope.module));
    this.places.set(kind, table);
    this.sections.push(table.element);
  }

  // choose restricts the views to intervals; null is all of the time.
  private choose(d: Accounts, first: Accounts | undefined, chosen: Account[] | null, of: string | undefined, within?: Spread): void {
    this.brushed = chosen !== null;
    const known = first?.model.name === d.model.name;
    if (this.tree && this.run && known) this.tree.show(chosen ? mean(chosen, of) : this.run);
    const functions = this.places.get("function");
    functions?.show(chosen && within ? during(within, functions.like, chosen) : null);
    const boxes = this.spans && chosen && together(this.spans, holding(chosen));
    if (this.spans) for (const f of this.flames) f.show(boxes || null);
    for (const f of this.followers) f.show(chosen);
    this.swap(chosen && known ? chosen : []);
    document.documentElement.classList.toggle("selected", this.brushed);
  }

  // when is the course over time; what is selected there restricts the other views.
  private when(d: Accounts, first: Accounts | undefined, within: Spread | undefined): void {
    const of = this.ex.method(d.model)?.of;
    const make = () => (this.course = new When(d, this.ex, chosen => this.choose(d, first, chosen, of, within))).element;
    if (!d.pending) { this.sections.push(make()); return; }
    const soon = h("section", { id: "when" }, h("h2", {}, "When"), h("p", { class: "hint" }, "The intervals are being read."));
    this.sections.push(soon);
    void d.pending.then(() => soon.replaceWith(make()));
  }
}

// plural is what several accounts are called.
function plural(list: Account[]): string {
  const { kind, start_s } = list[0].scope;
  return list.some(a => a.scope.start_s !== start_s) ? "rows" : kind === "process" ? "processes" : kind.replace(/y$/, "ie") + "s";
}

// Spread are the values of functions in each interval.
interface Spread extends Document { nodes: string[]; functions: [string, string, string][]; intervals: { start_s: number; rows: (number | null | number[])[][] }[] } // a row: function, share, its samples, values, and which of these are in doubt

// during are the accounts of functions in some intervals: means, weighted by share.
function during(d: Spread, like: Account, chosen: Account[]): Account[] {
  const by = new Map<number, { share: number; samples: number; rows: number; sums: Float64Array; weights: Float64Array; known: Uint32Array; doubtful: number[] }>(), n = d.nodes.length;
  const held = holding(chosen);
  for (const part of d.intervals) {
    if (!held(part.start_s)) continue;
    for (const all of part.rows) {
      const row = all.slice(0, n + 3) as (number | null)[], doubtful = (all[n + 3] || []) as number[];
      let t = by.get(row[0] as number);
      if (!t) by.set(row[0] as number, t = { share: 0, samples: 0, rows: 0, sums: new Float64Array(n), weights: new Float64Array(n), known: new Uint32Array(n), doubtful });
      const w = row[1] ?? 0;
      t.share += w; t.samples += row[2] ?? 0; t.rows += w > 0 ? 1 : 0;
      if (w <= 0) continue;
      for (let k = 0; k < n; k++) { const v = row[k + 3]; if (known(v)) { t.sums[k] += v * w; t.weights[k] += w; t.known[k]++; } }
    }
  }
  const at = new Map(d.nodes.map((path, k) => [path, k])), whole = chosen.reduce((t, a) => t + (a.scope.share ?? NaN), 0) || 1; // shares are of the selection
  const out = [...by.entries()].map(([i, t]): Account => {
    const [name, module, addr] = d.functions[i];
    const nodes = like.nodes.map((x): Account["nodes"][number] => {
      const k = at.get(x.path) ?? -1, found = k < 0 ? 0 : t.known[k];
      return { path: x.path, name: x.name, level: x.level, section: x.section, unit: x.unit, value: found > 0 ? t.sums[k] / t.weights[k] : null, together: false, flagged: false, reliable: found > 0 && found === t.rows && !(t.rows === 1 && t.doubtful.includes(k)), doubt: found < t.rows ? `not known in ${t.rows - found} of ${t.rows} intervals` : undefined };
    });
    return { scope: { kind: "function", function: name, module, addr: addr || undefined, share: t.share / whole, share_samples: t.samples }, nodes, bottleneck: [], audit: [], missing: [], counts: [] };
  });
  return out.sort((x, y) => (y.scope.share ?? 0) - (x.scope.share ?? 0));
}

// follow adds accounts as the server sends them.
function follow(url: string, list: Account[], views: Views): void {
  const state = h("p", { class: "hint", role: "status", id: "live-state" }, "live");
  document.querySelector("header")?.append(state);
  const source = new EventSource(url);
  source.addEventListener("account", e => {
    list.push(JSON.parse((e as MessageEvent<string>).data) as Account);
    if (list.length > liveMost) list.splice(0, list.length - liveMost);
    state.textContent = "live, " + list.length + " intervals";
    views.grown();
  });
  source.addEventListener("ended", () => { source.close(); state.textContent = "the counting has ended"; });
  source.addEventListener("slow", () => { state.textContent = "this page was too slow, and reads on"; });
  source.onerror = () => { if (source.readyState !== EventSource.CLOSED) state.textContent = "the connection is lost, and tried again"; };
  document.addEventListener("visibilitychange", () => { if (document.hidden && source.readyState !== EventSource.CLOSED) { source.close(); state.textContent = "paused in the background: load the page again"; } });
}

const liveMost = 600; // accounts that a live page keeps

// drop shows files of documents that are dragged in. They are read here and sent nowhere.
function drop(): void {
  document.addEventListener("dragover", e => e.preventDefault());
  document.addEventListener("drop", e => {
    e.preventDefault();
    shown([...(e.dataTransfer?.files || [])]);
  });
}

// shown shows files, or says why that is not possible.
function shown(files: File[]): void {
  void take(files).catch((x: unknown) => {
    document.getElementById("dropped")?.remove();
    document.querySelector("header")?.append(h("p", { class: "error", role: "alert", id: "dropped" }, "This file could not be shown: " + clean(String(x instanceof Error ? x.message : x))));
  });
}

// take shows files: documents of JSON, or one recording, which the server reads that the page comes from.
async function take(files: File[]): Promise<void> {
  const starts = await Promise.all(files.map(f => f.slice(0, 64).text()));
  if (starts.every(t => t.includes('"schema"'))) { show(await Promise.all(files.map(f => f.text()))); return; }
  if (!location.protocol.startsWith("http")) throw new Error("a page from disk shows documents of cyclestack --format json only; cyclestack serve reads recordings");
  if (files.length !== 1) throw new Error("one recording at a time");
  say("the server reads " + files[0].name);
  const root = new URL(".", location.href).pathname.replace(/recordings\/$/, "");
  const answer = await fetch(root + "api/v1/page", { method: "POST", body: files[0], headers: { "Content-Type": "application/octet-stream" } });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text.trim());
  const from = new DOMParser().parseFromString(text, "text/html"); // its scripts do not run
  const documents = await load(from);
  document.title = files[0].name;
  build(documents);
  await Promise.all(documents.map(d => d.pending));
  say(files[0].name + " is shown");
}

// show shows the JSON of documents.
function show(texts: string[]): void {
  const documents = texts.map(t => JSON.parse(t) as Document).filter(d => /^cyclestack\./.test(d.schema));
  if (documents.length === 0) throw new Error("no document of cyclestack --format json");
  build([...documents, ...loaded.filter(d => d.schema === "cyclestack.models/v1")]);
}

let loaded: Document[] = [];

// unfold opens the tables of numbers for paper.
function unfold(): void {
  let opened: HTMLDetailsElement[] = [];
  printing(on => {
    if (on) opened = [...document.querySelectorAll<HTMLDetailsElement>("details.numbers:not([open])")];
    for (const d of opened) d.open = on;
  });
}

async function begin(): Promise<void> {
  try {
    const documents = await load();
    const views = build(documents);
    loaded = documents;
    drop();
    unfold();
    const opened = performance.now();
    await Promise.all(documents.map(d => d.pending));
    for (const d of documents) delete d.pending;
    const live = (documents.find(d => d.schema === "cyclestack.page/v1") as About | undefined)?.live, course = accountsOf(documents)[0];
    if (live && course) follow(live, course.accounts, views);
    (window as unknown as { cyclestack: unknown }).cyclestack = { documents, format, gunzip, opened, together };
  } catch (e) {
    const p = document.getElementById("page");
    if (p) p.prepend(h("p", { class: "error", role: "alert" }, "This page could not be shown: " + String(e)));
  }
}

void begin();
