// Package perfstat reads the output of perf stat, in every form that it has had
// since 2009: text for people, fields with a separator (-x), JSON lines (-j),
// each of them for a whole run, for intervals (-I), and by logical processor,
// core, die, cluster, cache, socket, node, thread or cgroup. Which form a file
// has is recognised by its content, and what stands around the counts (a mail,
// a page, the output of the measured program) is passed over.
//
// It is the third step of the flow
//
//	model → plan → source → counts → account → report
//
// and knows neither models nor formulas: it yields a [counts.Table] for each
// block or interval.
//
//	r := perfstat.NewReader(f, "counts.csv", perfstat.Options{})
//	for r.Next() {
//		use(r.Table())
//	}
//	if err := r.Err(); err != nil {
//		return err
//	}
//
// What perf derives from counts (ratios, rates, top-down shares) is not read:
// they are formed anew, once, from the sums. docs/format/perf-stat.md describes
// each form, and how running times, groups and errors are taken from it.
package perfstat
