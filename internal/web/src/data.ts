// The documents of the page: what --format json prints.

export interface Expected { low: number; high: number; standing?: string }

export interface Node {
  path: string; name: string; level: number; section?: string; value: number | null; unit: string; error?: number;
  coverage?: number; together: boolean; reliable: boolean; doubt?: string; flagged: boolean; expected?: Expected;
  linked?: string[]; includes?: string[]; skids?: string[]; assumed?: string[];
}

export interface Scope {
  kind: string; label?: string; start_s?: number; duration_s?: number; cpu?: number; cpus?: number; core?: number; socket?: number;
  pid?: number; tid?: number; process?: string; thread?: string; cgroup?: string; module?: string; build_id?: string;
  function?: string; file?: string; line?: number; addr?: string; share_of?: string; share?: number; share_error?: number;
  share_samples?: number; hotspot?: boolean; runs?: number;
}

export interface Check {
  name: string; op: string; left?: number; right?: number; residual?: number; tolerance: number; state: string; ok: boolean;
  identity?: boolean; text?: string; why?: string; kind?: string; events?: string[]; error?: number | null; slack?: string; source?: string;
}

export interface Count { event: string; as?: string; lp?: number; value: number | null; coverage?: number; state?: string; samples: number }

// A Rate is the count of an event that the user named.
export interface Rate extends Count { unit?: string; rate?: number | null; per?: string }

export interface Times { model: Model; nodes: Node[]; bottleneck: string[]; missing: { node: string; why: string }[]; notes?: string[] }

export interface Account {
  scope: Scope; nodes: Node[]; bottleneck: string[]; ambiguous?: { path: string; of: string; margin: number | null }[];
  branching?: { dominance: string; instructions: number | null; branches: number | null; mispredictions: number | null };
  try?: string[]; events?: Rate[]; next?: { command: string; why: string }[]; audit: Check[]; missing: { node: string; why: string }[]; counts: Count[];
  unused?: string[]; unknown?: string[]; other_cores?: string[]; notes?: string[]; times?: Times;
}

export interface Model { name: string; version: string; params?: Record<string, number>; penalties?: { file: string; cpu?: string; measured?: string } }

export interface Head {
  schema: string; cpu: { id?: string; name: string; vendor: string }; model: Model;
  source: { kind: string; measured: boolean; how?: string; files?: string[] }; workload?: string;
}

export interface Accounts extends Head { accounts: Account[]; pending?: Promise<void> }

export interface MethodNode {
  path: string; name: string; level: number; section?: string; formula?: string; unit?: string; threshold?: string; rest?: boolean;
  overlap?: boolean; title?: string; about?: string; causes?: string[]; try?: string[]; source?: string;
}

export interface Method { name: string; version: string; title?: string; about?: string; source?: string; unit: string; of?: string; nodes: MethodNode[];
  parameters?: { name: string; value: number; unit?: string }[]; inputs?: { name: string; events: string[] }[] }

export interface Methods { schema: string; models: Method[] }

// A Document is one of the page. Pending ends when all of its accounts are there.
export type Document = { schema: string; pending?: Promise<void> };

const schemaOf: Record<string, string> = { accounts: "cyclestack.account/v1", methods: "cyclestack.models/v1" };

// decode returns the bytes of base64.
function decode(text: string): Uint8Array<ArrayBuffer> {
  const from = (Uint8Array as unknown as { fromBase64?: (s: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (from) return from(text);
  const binary = atob(text);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

import { gunzip } from "./inflate";

// chunks are the pieces of the text of gzip data, by the browser or, where it cannot, by the page's own code.
async function* chunks(data: Uint8Array<ArrayBuffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  if (typeof DecompressionStream === "undefined") { yield decoder.decode(gunzip(data)); return; }
  const reader = new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  for (let r = await reader.read(); !r.done; r = await reader.read()) yield decoder.decode(r.value, { stream: true });
}

const eager = 300; // accounts that are there when the page opens
const headMost = 1 << 20; // letters in front of the accounts
const slice = 12; // milliseconds of reading before the page may draw

// read reads a document. The accounts behind the first ones come later: see Document.pending.
async function read(packed: string): Promise<Document> {
  const begin = '"accounts":[', pieces = chunks(decode(packed));
  let text = "", line = -1;
  while (text.length < headMost && (line < 0 || text.length < line + begin.length + 2)) {
    const piece = await pieces.next();
    if (piece.done) return JSON.parse(text) as Document;
    text += piece.value;
    line = text.indexOf("\n");
  }
  if (line < 0 || !text.startsWith(begin + "\n", line + 1)) {
    const all = [text];
    for await (const more of pieces) all.push(more);
    return JSON.parse(all.join("")) as Document;
  }
  const d = JSON.parse(text.slice(0, line).replace(/,$/, "") + "}") as Document & { accounts: Account[] };
  d.accounts = [];
  text = text.slice(line + begin.length + 2);
  let last = performance.now(), ended = false;
  // lines reads up to so many accounts.
  const lines = async (most: number) => {
    while (d.accounts.length < most && !ended) {
      let at = 0;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", at)) {
        const one = text.slice(text[at] === "," ? at + 1 : at, end);
        at = end + 1;
        if (one.startsWith("]")) { ended = true; break; }
        d.accounts.push(JSON.parse(one) as Account);
      }
      text = text.slice(at);
      if (most === Infinity && performance.now() - last > slice) { await new Promise(done => setTimeout(done)); last = performance.now(); }
      const piece = ended ? undefined : await pieces.next();
      if (piece?.done) throw new Error("a document ends too early");
      if (piece) text += piece.value;
    }
  };
  await lines(eager);
  if (!ended) d.pending = lines(Infinity);
  return d;
}

// load returns the documents that are embedded in the page.
export async function load(from: ParentNode = document): Promise<Document[]> {
  const list: Document[] = [];
  for (const e of from.querySelectorAll("script.document")) list.push(await read((e.textContent || "").trim()));
  return list;
}

// A Method's nodes by path.
export class Explanations {
  private methods = new Map<string, Method>();
  private nodes = new Map<string, Map<string, MethodNode>>();

  constructor(documents: Document[]) {
    for (const d of documents) {
      if (d.schema !== schemaOf.methods) continue;
      for (const m of (d as Methods).models) {
        this.methods.set(m.name, m);
        this.nodes.set(m.name, new Map(m.nodes.map(n => [n.path, n])));
      }
    }
  }

  method(m: Model): Method | undefined { return this.methods.get(m.name); }

  node(m: Model, path: string): MethodNode | undefined { return this.nodes.get(m.name)?.get(path); }

  // share reports whether a node's value is a fraction of the whole, as model.Share does.
  share(m: Model, n: { path: string; unit: string; section?: string }): boolean {
    const method = this.methods.get(m.name);
    if (!method) return n.unit === "slots" || n.unit === "cycles";
    const own = this.node(m, n.path)?.unit || "";
    if (method.of) return own === "";
    return method.unit === "slots" && (own === "" || !n.section);
  }
}

// accounts returns the documents of accounts.
export function accountsOf(documents: Document[]): Accounts[] {
  return documents.filter(d => d.schema === schemaOf.accounts) as Accounts[];
}

// mainOf returns the nodes of the tree: those of no section, or if none of them is known, such as threads of the whole machine, those of the first tree that is.
export function mainOf(nodes: Node[]): Node[] {
  const known = nodes.filter(n => n.value !== null);
  const section = known.some(n => !n.section) ? undefined : known.find(n => n.path.includes("."))?.section;
  return nodes.filter(n => (n.section || undefined) === section);
}

// parentOf returns the path of a node's parent, "" for a root.
export function parentOf(path: string): string { return path.slice(0, Math.max(0, path.lastIndexOf("."))); }

// holding returns what reports whether intervals that follow each other have an instant.
export function holding(list: Account[]): (at: number) => boolean {
  const from = list[0].scope.start_s ?? NaN, last = list[list.length - 1].scope, till = (last.start_s ?? NaN) + Math.max(1e-9, (last.duration_s ?? 0) - 1e-9);
  return at => at > from - 1e-9 && at < till;
}
