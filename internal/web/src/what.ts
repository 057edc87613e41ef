// The answer in one sentence, the path to the bottleneck, how sure it is.

import { Account, Accounts, Explanations } from "./data";
import { clean, h } from "./dom";
import { coverage, duration, known, trim } from "./format";
import { otherUnit, valueText } from "./tree";

export function what(d: Accounts, a: Account, ex: Explanations): HTMLElement {
  const nodes = new Map(a.nodes.map(n => [n.path, n]));
  const path = a.bottleneck.map(p => nodes.get(p)).filter(n => n !== undefined);
  const last = path[path.length - 1];
  const box = h("section", { id: "what", "aria-labelledby": "what-h" }, h("h2", { id: "what-h" }, "What"));
  const facts = [known(a.scope.duration_s) ? duration(a.scope.duration_s) : "", "on " + d.cpu.name, d.model.name + " " + d.model.version,
    d.source.how || "from " + d.source.kind.replace(/-/g, " "), d.source.measured ? "" : "not measured"];
  box.append(h("p", { class: "facts" }, clean([a.scope.label || "", ...facts].filter(t => t !== "").join(", "))));
  if (!last) {
    if (!a.nodes.some(n => known(n.value))) {
      box.append(h("p", { class: "verdict" }, "No node of this method is known" + (a.counts?.some(c => c.samples) ? ": the samples say where the time went, and not why." : ".")));
      return own(box, a);
    }
    box.append(h("p", { class: "verdict" }, a.nodes.some(n => n.flagged) ? "Several nodes are flagged, and none leads to a bottleneck." : "No node is above its threshold: there is no bottleneck."));
    return own(box, a);
  }
  const title = ex.node(d.model, last.path)?.title;
  const useful = /^retir/i.test(path[0].name);
  const share = ex.share(d.model, last);
  const verdict = h("p", { class: "verdict" }, h("strong", {}, last.name), " is the " + (useful ? "largest part" : "bottleneck") + ": ",
    h("span", { class: "number", "data-node": last.path, "data-key": "value" }, valueText(ex, d.model, last)), (share ? " of " : " ") + last.unit, title ? ". " + title + "." : ".");
  const trail = h("ol", { class: "trail", "aria-label": "bottleneck path" });
  for (const n of path) trail.append(h("li", {}, h("a", { href: "#tree", "data-go": n.path }, n.name), " ", valueText(ex, d.model, n), otherUnit(ex, d.model, n)));
  box.append(verdict, trail, h("p", {}, sure(d, a, ex, last)));
  const advice = a.try?.find(t => !t.startsWith("follow the ")); // to follow its parts is what the tree itself says
  if (advice) box.append(h("p", {}, h("b", {}, "Try: "), clean(advice)));
  if (a.next?.length) {
    const list = h("ul", { class: "next" });
    for (const n of a.next) list.append(h("li", {}, h("code", {}, clean(n.command, 2000)), " ", clean(n.why)));
    box.append(h("p", {}, h("b", {}, "Next:")), list);
  }
  return own(box, a);
}

// several says what the verdicts of some intervals are: each has its own, and how often one is the bottleneck.
export function several(d: Accounts, list: Account[], ex: Explanations, which = "selected intervals"): HTMLElement {
  const by = new Map<string, Account[]>();
  for (const a of list) { const p = a.bottleneck[a.bottleneck.length - 1] || ""; by.set(p, [...(by.get(p) || []), a]); }
  const ranked = [...by.entries()].sort((x, y) => y[1].length - x[1].length || x[0].localeCompare(y[0])), [top, most] = ranked[0];
  const start = Math.min(...list.map(a => a.scope.start_s ?? NaN)), end = Math.max(...list.map(a => (a.scope.start_s ?? NaN) + (a.scope.duration_s ?? NaN)));
  const name = (p: string) => ex.node(d.model, p)?.name || p.split(".").pop() || "";
  const link = (p: string) => h("a", { href: "#tree", "data-go": p }, name(p));
  const often = `in ${most.length} of the ${list.length} ${which}`;
  const box = h("section", { id: "what", "aria-labelledby": "what-h" }, h("h2", { id: "what-h" }, "What"),
    h("p", { class: "facts" }, clean([...(known(start) && known(end) ? [trim(start) + " s to " + trim(end) + " s"] : []), "on " + d.cpu.name, d.model.name + " " + d.model.version].join(", "))),
    top === "" ? h("p", { class: "verdict" }, "There is no bottleneck " + often + ".") :
      h("p", { class: "verdict" }, h("strong", {}, name(top)), (/^retir/i.test(top) ? " is the largest part " : " is the bottleneck ") + often + "."));
  if (top !== "") {
    const trail = h("ol", { class: "trail", "aria-label": "bottleneck path" });
    for (const p of most[0].bottleneck) trail.append(h("li", {}, link(p)));
    box.append(trail);
  }
  const body = h("tbody");
  for (const [p, of] of ranked) body.append(h("tr", { "data-verdict": p }, h("th", { scope: "row" }, p === "" ? "none" : link(p)), h("td", { class: "number", "data-key": "intervals" }, String(of.length)),
    h("td", { class: "number" }, String(of.filter(a => { const n = a.nodes.find(x => x.path === p); return n !== undefined && !n.reliable; }).length))));
  box.append(h("table", {}, h("thead", {}, h("tr", {}, ...["Bottleneck", which.replace(/^.* /, "").replace(/^./, c => c.toUpperCase()), "Uncertain in"].map(t => h("th", { scope: "col" }, t)))), body));
  return box;
}

// own adds a table of the events that the user named, if there are any.
function own(box: HTMLElement, a: Account): HTMLElement {
  if (!a.events?.length) return box;
  const time = (unit?: string) => /^(ns|us|usec|ms|msec|s|sec|seconds)$/.test(unit || ""); // all are counted in ns
  const text = (v: number, unit?: string) => time(unit) ? duration(v / 1e9) : trim(v) + (unit ? " " + unit : "");
  const body = h("tbody");
  for (const e of a.events) {
    const value = known(e.value) ? text(e.value, e.unit) : e.state || "not known";
    body.append(h("tr", {}, h("th", { scope: "row" }, clean(e.as || e.event)), h("td", { class: "number" }, value),
      h("td", { class: "number" }, known(e.rate) && e.per && !time(e.unit) ? trim(e.rate) + " per " + e.per : ""), h("td", { class: "number" }, known(e.coverage) && e.coverage < 1 ? coverage(e.coverage) : "")));
  }
  box.append(h("table", { id: "own" }, h("thead", {}, h("tr", {}, ...["Event", "Count", "Rate", "Counted"].map(t => h("th", { scope: "col" }, t)))), body));
  return box;
}

// sure says how far the verdict can be trusted.
function sure(d: Accounts, a: Account, ex: Explanations, last: Account["nodes"][number]): string {
  const list: string[] = [];
  if (known(last.error)) list.push("The 95 % interval is ± " + valueText(ex, d.model, { ...last, value: last.error }) + ".");
  else list.push("Its error cannot be estimated.");
  if (known(last.coverage)) list.push("Its events were on a counter for " + coverage(last.coverage) + " of the time" + (last.together ? "." : ", and not together."));
  if (!last.reliable) list.push("It is uncertain: " + (last.doubt || "see the audit") + ".");
  for (const r of a.ambiguous || []) list.push(r.path.split(".").pop() + " could take the place of " + r.of.split(".").pop() + ": the difference is within the error.");
  const checks = a.audit.filter(c => c.state !== "skipped"), bad = checks.filter(c => !c.ok);
  if (checks.length) list.push(bad.length ? `${bad.length} of ${checks.length} checks fail.` : checks.length === 1 ? "The only check holds." : `All ${checks.length} checks hold.`);
  return list.join(" ");
}
