// Elements are made from text, never from markup: names come from recordings.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | EventListener | undefined>;

const svgSpace = "http://www.w3.org/2000/svg";

function fill(e: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") e.addEventListener(name, value);
    else e.setAttribute(name, value === true ? "" : name === "title" || name === "aria-label" ? clean(String(value), longest) : String(value));
  }
  for (const c of children) if (c) e.append(typeof c === "string" ? clean(c, longest) : c);
}

// h makes an element of HTML.
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  fill(e, attributes, children);
  return e;
}

// s makes an element of SVG.
export function s<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const e = document.createElementNS(svgSpace, tag);
  fill(e, attributes, children);
  return e;
}

// clear removes what is in an element.
export function clear(e: Element): void { e.textContent = ""; }

const longest = 5000; // letters of a text

// clean makes a name fit for display: bounded, without invisible characters and marks of direction.
export function clean(name: string, most = 400): string {
  if (name.length <= most && /^[\x20-\x7e]*$/.test(name)) return name;
  const cut = name.length > most ? name.slice(0, most) + "…" : name;
  return cut.replace(/\t/g, "    ").replace(/\u200b/g, "").replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu, "\uFFFD");
}

// save downloads text as a file.
export function save(name: string, text: BlobPart, type: string): void {
  const a = h("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

export const paper = 700; // pixels of its width

// printing calls back before the page is printed, and after that.
export function printing(call: (on: boolean) => void): void {
  window.addEventListener("beforeprint", () => call(true));
  window.addEventListener("afterprint", () => call(false));
}

// fit calls draw with the width of an element, and again when that changes. On paper it has the paper's.
export function fit(e: Element, draw: (width: number) => void): void {
  let last = 0, print = false;
  const again = () => {
    const w = print ? paper : Math.floor(e.getBoundingClientRect().width);
    if (w > 0 && w !== last) draw(last = w);
  };
  printing(on => { print = on; again(); });
  new ResizeObserver(() => requestAnimationFrame(again)).observe(e);
  again();
}

let ids = 0;

// id returns a new id for an element.
export function id(prefix: string): string { return prefix + "-" + ++ids; }

const live = h("div", { "aria-live": "polite", class: "away", id: "live" });

// say tells readers of the screen what has changed.
export function say(text: string): void {
  if (!live.isConnected) document.body.append(live);
  live.textContent = text;
}
