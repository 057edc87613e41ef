// Inflate (RFC 1951) and gzip (RFC 1952), for browsers without DecompressionStream.

const lengthBase = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const lengthExtra = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const distanceBase = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

interface Code { count: Uint16Array; symbol: Uint16Array }

function code(lengths: number[]): Code {
  const count = new Uint16Array(16), start = new Uint16Array(16), symbol = new Uint16Array(lengths.length);
  for (const l of lengths) count[l]++;
  count[0] = 0;
  for (let i = 1; i < 16; i++) start[i] = start[i - 1] + count[i - 1];
  lengths.forEach((l, i) => { if (l) symbol[start[l]++] = i; });
  return { count, symbol };
}

export function gunzip(data: Uint8Array): Uint8Array {
  let at = 10;
  const flags = data[3];
  if (flags & 4) at += 2 + data[at] + 256 * data[at + 1];
  for (const bit of [8, 16]) if (flags & bit) while (data[at++]);
  if (flags & 2) at += 2;
  const size = new DataView(data.buffer, data.byteOffset).getUint32(data.length - 4, true);
  const out = new Uint8Array(size);
  let to = 0, hold = 0, held = 0;
  const bits = (n: number): number => {
    while (held < n) { hold |= data[at++] << held; held += 8; }
    const v = hold & ((1 << n) - 1);
    hold >>>= n; held -= n;
    return v;
  };
  const next = (c: Code): number => {
    let value = 0, first = 0, index = 0;
    for (let l = 1; l < 16; l++) {
      value |= bits(1);
      const n = c.count[l];
      if (value - n < first) return c.symbol[index + value - first];
      index += n; first = (first + n) << 1; value <<= 1;
    }
    throw new Error("damaged data");
  };
  for (let last = 0; !last;) {
    last = bits(1);
    const type = bits(2);
    if (type === 0) {
      hold = held = 0;
      const n = data[at] + 256 * data[at + 1];
      out.set(data.subarray(at + 4, at + 4 + n), to);
      at += 4 + n; to += n;
      continue;
    }
    if (type === 3) throw new Error("damaged data");
    let literals: Code, distances: Code;
    if (type === 1) {
      literals = code(Array.from({ length: 288 }, (_, i) => i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
      distances = code(new Array(30).fill(5));
    } else {
      const n = bits(5) + 257, d = bits(5) + 1, c = bits(4) + 4, lengths: number[] = new Array(19).fill(0);
      for (let i = 0; i < c; i++) lengths[order[i]] = bits(3);
      const meta = code(lengths), all: number[] = [];
      while (all.length < n + d) {
        const sym = next(meta);
        if (sym < 16) all.push(sym);
        else {
          const v = sym === 16 ? all[all.length - 1] : 0;
          for (let k = sym === 16 ? 3 + bits(2) : sym === 17 ? 3 + bits(3) : 11 + bits(7); k > 0; k--) all.push(v);
        }
      }
      literals = code(all.slice(0, n)); distances = code(all.slice(n));
    }
    for (let sym = next(literals); sym !== 256; sym = next(literals)) {
      if (sym < 256) { out[to++] = sym; continue; }
      sym -= 257;
      let n = lengthBase[sym] + bits(lengthExtra[sym]);
      const d = next(distances), back = distanceBase[d] + bits(d < 2 ? 0 : (d >> 1) - 1);
      for (; n > 0; n--, to++) out[to] = out[to - back];
    }
  }
  return out.subarray(0, to);
}
