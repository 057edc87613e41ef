
"use strict";
(function () {
const data = JSON.parse(document.getElementById("data").textContent);
const first = 5; // numbers of a box before its values
const height = 18;
const boxes = data.boxes.map(b => ({parent: b[0], name: data.names[b[1]], module: data.modules[b[2]],
  limit: data.limits[b[3]] || "", inlined: (b[4] & 1) !== 0, kernel: (b[4] & 2) !== 0, values: b.slice(first), below: [], depth: 0}));
boxes.forEach((b, i) => {
  if (b.parent < 0) return;
  boxes[b.parent].below.push(i);
  b.depth = boxes[b.parent].depth + 1;
});

const limited = boxes.some(b => b.limit !== "");
const state = {type: data.main, zoom: 0, colour: limited ? "bottleneck" : "module", find: null};

// make returns an element with text, which is never taken for markup.
function make(tag, text, parent) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.appendChild(e);
  return e;
}

const header = make("header", undefined, document.body);
make("h1", data.title, header);
const controls = make("div", undefined, header);
controls.className = "controls";
const typeSelect = make("select", undefined, make("label", "Width ", controls));
typeSelect.id = "type";
data.types.forEach((t, i) => {
  const o = make("option", (t.path || t.name) + (t.unit ? " (" + t.unit + ")" : ""), typeSelect);
  o.value = String(i);
});
typeSelect.value = String(state.type);
const colourSelect = make("select", undefined, make("label", "Colour ", controls));
colourSelect.id = "colour";
for (const c of limited ? ["bottleneck", "module"] : ["module"]) make("option", c, colourSelect).value = c;
colourSelect.value = state.colour;
const search = make("input", undefined, make("label", "Search ", controls));
search.id = "search";
search.type = "search";
search.placeholder = "part of a name, or /regular expression/";
const matched = make("span", "", controls);
matched.id = "matched";
const reset = make("button", "Whole graph", controls);
reset.id = "reset";
reset.type = "button";
const legend = make("div", undefined, header);
legend.className = "legend";
const graph = make("div", undefined, document.body);
graph.id = "graph";
const details = make("div", undefined, document.body);
details.id = "details";
const footer = make("footer", undefined, document.body);
if (data.notes.length > 0) {
  const list = make("ul", undefined, footer);
  list.className = "notes";
  for (const n of data.notes) make("li", n, list);
}

const value = b => b.values[state.type] || 0;
const unit = () => data.types[state.type] ? data.types[state.type].unit : "";
function figure(v) {
  if (v >= 1e15) return v.toExponential(3);
  return Math.round(v).toLocaleString("en");
}
const percent = (v, of) => of > 0 ? (100 * v / of).toFixed(2) + " %" : "–";

// Colours: the names with the most are given colours that are told apart easily.
const palette = ["#f2a65a", "#7cc7e8", "#9bd08a", "#e7c6ff", "#f6d55c", "#f28b82", "#80cbc4", "#c5b3e6", "#b8c480", "#e6a5c7"];
const other = "#d8d4cc";
const key = b => state.colour === "module" ? (b.module || (b.depth < 2 ? "" : "no module")) : b.limit;
let colours = new Map();
function assign() {
  const sums = new Map();
  boxes.forEach(b => {
    const own = value(b) - b.below.reduce((s, i) => s + value(boxes[i]), 0);
    sums.set(key(b), (sums.get(key(b)) || 0) + Math.max(own, 0));
  });
  const names = [...sums.keys()].filter(k => k !== "").sort((x, y) => sums.get(y) - sums.get(x) || (x < y ? -1 : 1));
  colours = new Map(names.slice(0, palette.length).map((n, i) => [n, palette[i]]));
  legend.textContent = "";
  const entries = [...colours];
  if (names.length > palette.length) entries.push(["others", other]);
  else if (state.colour === "bottleneck" && sums.has("")) entries.push(["no bottleneck", other]);
  for (const [name, c] of entries) {
    const s = make("span", undefined, legend);
    make("i", undefined, s).style.background = c;
    s.appendChild(document.createTextNode(name));
  }
}

// short returns as much of a name as is worth showing in so many dots: without the
// directories of a Go package if it does not fit.
function short(name, width) {
  const letter = 7.3;
  if (width < 24) return "";
  if (name.length * letter <= width) return name;
  const end = name.search(/[(\[<]/);
  return name.slice(name.lastIndexOf("/", end < 0 ? name.length : end) + 1);
}

// matches returns whether a name is one that is searched for.
function matcher(text) {
  if (text === "") return null;
  const m = /^\/(.+)\/?$/.exec(text);
  if (m) {
    try {
      const r = new RegExp(m[1].replace(/\/$/, ""), "i");
      return s => r.test(s);
    } catch (e) {
      return () => false;
    }
  }
  const part = text.toLowerCase();
  return s => s.toLowerCase().includes(part);
}

function describe(i) {
  const b = boxes[i];
  details.textContent = "";
  make("b", b.name, details);
  let text = "";
  if (b.module) text += "  in " + b.module;
  if (b.inlined) text += ", inlined";
  if (b.kernel) text += ", kernel";
  text += ": " + figure(value(b)) + " " + unit() + ", " + percent(value(b), value(boxes[0])) + " of all";
  if (state.zoom !== 0) text += ", " + percent(value(b), value(boxes[state.zoom])) + " of what is shown";
  if (b.limit) text += "; bottleneck " + b.limit;
  details.appendChild(document.createTextNode(text));
  if (i === 0) return;
  const rest = data.types.map((t, k) => k === state.type ? "" : t.name + " " + percent(b.values[k], boxes[0].values[k])).filter(s => s !== "");
  if (rest.length > 0) make("div", "of all: " + rest.slice(0, 24).join(", "), details);
}

function draw() {
  const width = graph.clientWidth || 1000;
  const root = boxes[state.zoom];
  const shown = document.createDocumentFragment();
  let deepest = 0, drawn = 0;
  function place(i, x, w, under) {
    const b = boxes[i];
    deepest = Math.max(deepest, b.depth);
    const e = make("button", short(b.name, w), shown);
    e.type = "button";
    e.className = "box" + (w < 4 ? " thin" : "") + (under ? " under" : "");
    e.style.left = x + "px";
    e.style.top = b.depth * height + "px";
    e.style.width = Math.max(w, 0.5) + "px";
    e.style.background = colours.get(key(b)) || other;
    if (state.find && b.depth > 0 && state.find(b.name)) e.classList.add("found");
    e.title = b.name + "  " + percent(value(b), value(boxes[0]));
    e.dataset.box = String(i);
    drawn++;
  }
  const above = [];
  for (let i = root.parent; i >= 0; i = boxes[i].parent) above.unshift(i);
  for (const i of above) place(i, 0, width, true);
  const scale = value(root) > 0 ? width / value(root) : 0;
  const walk = [[state.zoom, 0]];
  while (walk.length > 0) {
    const [i, x] = walk.pop();
    const w = value(boxes[i]) * scale;
    if (w < 0.3) continue;
    place(i, x, w, false);
    let at = x;
    for (const c of boxes[i].below) {
      walk.push([c, at]);
      at += value(boxes[c]) * scale;
    }
  }
  graph.textContent = "";
  graph.appendChild(shown);
  graph.style.height = (deepest + 1) * height + "px";
  matched.textContent = state.find ? percent(found(), value(boxes[0])) + " matched" : "";
  describe(state.zoom);
}

// found adds up the boxes that match, but for those that stand on one.
function found() {
  let sum = 0;
  const walk = [0];
  while (walk.length > 0) {
    const i = walk.pop();
    if (i > 0 && state.find(boxes[i].name)) sum += value(boxes[i]);
    else walk.push(...boxes[i].below);
  }
  return sum;
}

function zoom(i) {
  state.zoom = i;
  draw();
}

graph.addEventListener("click", e => {
  const box = e.target.closest(".box");
  if (box) zoom(Number(box.dataset.box));
});
for (const event of ["mouseover", "focusin"]) {
  graph.addEventListener(event, e => {
    const box = e.target.closest(".box");
    if (box) describe(Number(box.dataset.box));
  });
}
reset.addEventListener("click", () => zoom(0));
document.addEventListener("keydown", e => {
  if (e.key !== "Escape") return;
  search.value = "";
  state.find = null;
  zoom(0);
});
search.addEventListener("input", () => {
  state.find = matcher(search.value.trim());
  draw();
});
typeSelect.addEventListener("change", () => {
  state.type = Number(typeSelect.value);
  if (value(boxes[state.zoom]) <= 0) state.zoom = 0;
  assign();
  draw();
});
colourSelect.addEventListener("change", () => {
  state.colour = colourSelect.value;
  assign();
  draw();
});
window.addEventListener("resize", draw);
assign();
draw();
})();
