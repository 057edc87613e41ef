// The page: documents in, views out.

import { Accounts, Document, Explanations, accountsOf, load } from "./data";
import { clean, clear, h } from "./dom";
import { Tree } from "./tree";
import { what } from "./what";
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

function build(documents: Document[]): void {
  const page = document.getElementById("page") as HTMLElement;
  clear(page);
  const ex = new Explanations(documents), sections: HTMLElement[] = [];
  const first = { done: false };
  for (const d of accountsOf(documents)) sections.push(...views(d, ex, first));
  const title = document.title;
  const links = h("nav", { "aria-label": "parts of the page" });
  for (const e of sections) links.append(h("a", { href: "#" + e.id }, e.querySelector("h2")?.textContent || e.id));
  page.append(h("header", {}, h("h1", {}, clean(title)), links, theme()), h("main", {}, ...sections));
  document.documentElement.classList.add("ready");
}

function views(d: Accounts, ex: Explanations, first: { done: boolean }): HTMLElement[] {
  const out: HTMLElement[] = [], run = d.accounts.find(a => a.scope.kind === "run");
  const others = d.accounts.filter(a => a !== run);
  if (run && run.nodes.length > 0 && !first.done) {
    first.done = true;
    const tree = new Tree(d, run, ex);
    const answer = what(d, run, ex);
    answer.addEventListener("click", e => { const p = (e.target as HTMLElement).dataset?.go; if (p) tree.open(p); });
    out.push(answer, tree.element);
  }
  if (others.length > 0) out.push(new Where(d, ex, others[0].scope.kind, () => undefined).element);
  return out;
}

async function begin(): Promise<void> {
  try {
    const documents = await load();
    build(documents);
    (window as unknown as { cyclestack: unknown }).cyclestack = { documents };
  } catch (e) {
    const p = document.getElementById("page");
    if (p) p.prepend(h("p", { class: "error", role: "alert" }, "This page could not be shown: " + String(e)));
  }
}

void begin();
