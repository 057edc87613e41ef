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

// scaled is an amount with four digits and a decimal unit: "1.234 G".
function scaled(v: number): string {
  const units = ["k", "M", "G", "T", "P", "E"];
  let unit = "";
  while (units.length && Math.abs(v) >= 999.95) { v /= 1e3; unit = units.shift()!; }
  const abs = Math.abs(v);
  if (abs >= 9999.5) return v.toExponential(3).replace(/\.?0*e/, "e").replace(/e([+-])(\d)$/, "e$10$2") + " " + unit;
  const text = fixed(v, abs >= 999.95 ? 0 : abs >= 100 ? 1 : abs >= 10 ? 2 : abs >= 1 ? 3 : 4);
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text) + " " + unit;
}

// exact is a number with all of its digits before the point: for numbers that are compared.
export function exact(v: number | null | undefined): string {
  return known(v) && Math.abs(v) >= 1e5 && Math.abs(v) < 1e15 ? group(fixed(v, 0)) : trim(v);
}

// trim is a number with five significant digits. From 100,000 on it has four and a unit.
export function trim(v: number | null | undefined): string {
  if (!known(v)) return "–";
  const abs = Math.abs(v);
  if (abs >= 1e5) return scaled(v);
  if (abs !== 0 && abs < 1e-4) return exponent(v);
  let digits = 5;
  for (let x = abs; x >= 1 && digits > 0; x /= 10) digits--;
  const text = fixed(v, digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// exponent writes three digits and an exponent of two, as Go does.
function exponent(v: number): string {
  const text = v.toExponential(2);
  if (text.endsWith("e-4")) return String(Number(text)); // it was rounded up
  return text.replace(/\.?0*e/, "e").replace(/e([+-])(\d)$/, "e$10$2");
}

// duration is a time in seconds as a person reads it.
export function duration(sec: number): string {
  if (sec === 0) return "0 s";
  if (sec < 0) return "-" + duration(-sec);
  if (sec < 1e-6) return trim(sec * 1e9) + " ns";
  if (sec >= 100) return fixed(sec, 1) + " s";
  if (sec >= 1) return fixed(sec, 2) + " s";
  if (sec >= 1e-3) return fixed(sec * 1e3, 2) + " ms";
  return fixed(sec * 1e6, 1) + " µs";
}

// coverage is a share of time as perf prints it.
export function coverage(share: number): string { return share >= 0.99995 ? "100 %" : fixed(share * 100, 2) + " %"; }
