// Numbers as the reports for terminals write them; see internal/page/number.go.

// fixed is a number with some decimals. Ties go to the even digit, as in Go.
export function fixed(v: number, decimals: number): string {
  let text = v.toFixed(decimals);
  const exact = v.toFixed(Math.min(100, decimals + 30));
  const rest = exact.slice(exact.length - 30);
  if (/^50*$/.test(rest)) {
    const down = decimals === 0 ? exact.slice(0, -31) : exact.slice(0, -30);
    if ("02468".includes(down[down.length - 1])) text = down;
  }
  return /^-[0.]*$/.test(text) ? text.slice(1) : text;
}

// percentOf is a share with one decimal.
export function percentOf(share: number | null | undefined): string {
  return known(share) ? fixed(share * 100, 1) + " %" : "–";
}

export function known(v: number | null | undefined): v is number { return typeof v === "number" && !Number.isNaN(v); }

// group separates the digits of an integer in threes.
export function group(digits: string): string {
  const sign = digits.startsWith("-") ? "-" : "";
  return sign + digits.slice(sign.length).replace(/\B(?=(\d{3})+$)/g, ",");
}

// trim is a number with five significant digits.
export function trim(v: number | null | undefined): string {
  if (!known(v)) return "–";
  const abs = Math.abs(v);
  if (abs >= 1e15) return exponent(v, 4);
  if (abs >= 1e5) return group(fixed(v, 0));
  if (abs !== 0 && abs < 1e-4) return exponent(v, 2);
  let digits = 5;
  for (let x = abs; x >= 1 && digits > 0; x /= 10) digits--;
  const text = fixed(v, digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// exponent writes an exponent of two digits, as Go does.
function exponent(v: number, decimals: number): string {
  let text = v.toExponential(decimals);
  if (decimals === 2) {
    if (text.endsWith("e-4")) return String(Number(text)); // it was rounded up
    text = text.replace(/\.?0*e/, "e");
  }
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

// duration is a time in seconds as a person reads it.
export function duration(sec: number): string {
  if (sec >= 100) return fixed(sec, 1) + " s";
  if (sec >= 1) return fixed(sec, 2) + " s";
  if (sec >= 1e-3) return fixed(sec * 1e3, 2) + " ms";
  return fixed(sec * 1e6, 1) + " µs";
}

// coverage is a share of time as perf prints it.
export function coverage(share: number): string { return share >= 0.99995 ? "100 %" : fixed(share * 100, 2) + " %"; }
