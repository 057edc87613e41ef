// Can it be believed: checks, counts with their coverage, notes, and where all is from.

import { Account, Accounts, Document } from "./data";
import { clean, h, id } from "./dom";
import { coverage, exact, known, percentOf, trim } from "./format";

export interface About extends Document { version: string; command: string[]; left_out?: { view: string; why: string }[]; live?: string }

function table(label: string, heads: string[], rows: HTMLTableRowElement[]): HTMLElement {
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, h("table", {}, h("thead", {}, h("tr", {}, ...heads.map(t => h("th", { scope: "col" }, t)))), h("tbody", {}, ...rows)));
}

const number = (text: string, key = "") => h("td", { class: "number", "data-key": key || undefined }, text);

// list is a heading with points, nothing without any.
function list(title: string, items: string[] | undefined): HTMLElement | null {
  return items?.length ? h("div", {}, h("h3", {}, title), h("ul", {}, ...items.map(t => h("li", {}, clean(t, 2000))))) : null;
}

// checked are the checks of several intervals: in how many each holds.
function checked(list: Account[]): HTMLElement {
  const by = new Map<string, { holds: number; fails: number; skipped: number }>();
  for (const a of list) for (const c of a.audit) { const t = by.get(c.name) || { holds: 0, fails: 0, skipped: 0 }; t[c.state === "holds" || c.state === "fails" ? c.state : "skipped"]++; by.set(c.name, t); }
  return table("checks", ["Check", "Holds in", "Fails in", "Skipped in"], [...by.entries()].map(([name, t]) => h("tr", { class: t.fails ? "fails" : t.holds ? "" : "doubtful" }, h("th", { scope: "row" }, clean(name, 300)),
    number(String(t.holds), "holds"), number(String(t.fails), "fails"), number(String(t.skipped), "skipped"))));
}

// trust is of an account, or of several intervals whose sums it has.
export function trust(d: Accounts, a: Account, documents: Document[], several: Account[] = []): HTMLElement {
  const about = documents.find(x => x.schema === "cyclestack.page/v1") as About | undefined, hId = id("h");
  const facts: [string, string][] = [["Program", a.scope.label || ""], ["Processor", d.cpu.name + (d.cpu.id ? ` (${d.cpu.id})` : "")], ["Method", `${d.model.name} ${d.model.version}`],
    ["Counts", (d.source.how || d.source.kind) + (d.source.measured ? "" : ", not measured")], ["Files", (d.source.files || []).join(", ")],
    ["Parameters", Object.entries(d.model.params || {}).map(([k, v]) => `${k} = ${trim(v)}`).join(", ")], ["Kind of program", d.workload || ""],
    ["Penalties", d.model.penalties ? d.model.penalties.file + (d.model.penalties.measured ? ", measured " + d.model.penalties.measured : "") : ""],
    ["Command", (about?.command || []).join(" ")], ["cyclestack", about?.version || ""]];
  const checks = a.audit.map(c => h("tr", { class: c.state === "fails" ? "fails" : c.state === "skipped" ? "doubtful" : "" }, h("th", { scope: "row" }, clean(c.name, 300)), h("td", {}, c.state === "fails" ? "✗ fails" : c.state === "holds" ? "✓ holds" : "skipped"),
    number(exact(c.left), "left"), h("td", {}, c.op), number(exact(c.right), "right"), number(percentOf(c.residual), "residual"), h("td", {}, clean(c.why || c.text || "", 1000))));
  const counts = a.counts.map(c => h("tr", {}, h("th", { scope: "row" }, clean(c.event, 300)), h("td", {}, clean(c.as || "", 300)), number(trim(c.value), "value"), number(known(c.coverage) ? coverage(c.coverage) : "–", "coverage"), number(c.samples ? String(c.samples) : "–", "samples"), h("td", {}, c.state || "")));
  return h("section", { id: "trust", "aria-labelledby": hId }, h("h2", { id: hId }, "Can I believe it"),
    h("dl", {}, ...facts.filter(f => f[1] !== "").flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, clean(v, 4000))])),
    list("Notes", a.notes), list("Not in this page", about?.left_out?.map(l => `${l.view}: ${l.why}`)),
    several.length ? h("div", {}, h("h3", {}, `Checks of ${several.length} ${several[0].scope.kind === "interval" ? "intervals" : "rows"}`), checked(several)) : a.audit.length ? h("div", {}, h("h3", {}, "Checks"), table("checks", ["Check", "State", "Left", "Relation", "Right", "Difference", "Why"], checks)) : null,
    h("h3", {}, "Counts"), table("counts", ["Event", "As", "Value", "Coverage", "Samples", "State"], counts),
    list("Events that the method does not use", a.unused), list("Events that are not known", a.unknown), list("Events of other cores", a.other_cores));
}
