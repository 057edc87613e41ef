// Package metric is the formula language of the models: parse, check, fold,
// compile, evaluate; and the units of the values.
//
// It serves the first and the fifth step of the flow
//
//	model → plan → source → counts → account → report
//
// The first reads models, and the fifth evaluates their formulas with counts. Names
// are events, nodes and parameters; the package does not know which.
// The package promises that goroutines can share a [Program], whose evaluation
// allocates nothing.
//
// # Grammar
//
// It reads the metric grammar of Linux's perf, that of Intel's metric files and
// that of Arm's, which differ little; all are accepted at once:
//
//	expr    = or [ "if" or "else" expr ]
//	or      = xor { "|" xor }          a logical or, 0 or 1
//	xor     = and { "^" and }
//	and     = cmp { "&" cmp }
//	cmp     = shift { ("<" | ">" | "<=" | ">=" | "==" | "!=") shift }
//	shift   = sum { "<<" number }      x << 12 is x * 4096
//	sum     = product { ("+" | "-") product }
//	product = unary { ("*" | "/" | "%") unary }
//	unary   = "-" unary | primary
//	primary = number | name | "#" literal | function "(" … ")" | "(" expr ")"
//
// The functions are min(x, y), max(x, y), d_ratio(x, y), which is x / y,
// has_event(name), source_count(name) and strcmp_cpuid_str(id). A blank may
// stand between the two characters of ">=" and "<=", and "&" and "|" may be
// doubled, as Intel prints them. The remainder % is that of integers: both sides
// are truncated first.
//
// A number is decimal (2, 0.5, .5, 1e9, 1e-06) or hexadecimal (0x10). A name is
// made of letters, digits and the characters _ . : ? @, where @ stands for the
// slash of perf's event syntax; any other printable character is part of a name
// after a backslash. cpu@event\=0xa8\,umask\=0x1@k is the event
// cpu/event=0xa8,umask=0x1/k. Three spellings of vendors' files need no
// backslash. They are an equals sign in an event's modifiers
// (EVENT:ocr_msr_val=0x10), an index (a[0]) and Intel's (%) after names
// of shares (metric_TMA_Retiring(%)). A name may begin with a digit
// (4K_Aliasing). A literal (#smt_on, #num_packages) is something the machine
// knows about itself; case does not matter.
//
// A formula is at most 131,072 bytes long and nested at most 200 deep.
//
// # Values
//
// A missing input is NaN, and what needs it is unknown, which is NaN too;
// [Program.Why] says why. Unknown is never taken for 0:
//
//   - a branch of "if" that is not taken does not matter;
//   - 0 & x is 0 and 1 | x is 1 for every x, on either side, unknown or not;
//   - x / 0, x % 0 and d_ratio(x, 0) are unknown. Perf makes the last one 0,
//     which would show what nobody measured as a measured nothing;
//   - a result beyond the range of float64 is unknown, and so is what an
//     infinite input makes.
//
// # Units
//
// [Expr.Unit] works out the [Unit] of a formula from those of its names. It tells where
// cycles are added to instructions.
package metric
