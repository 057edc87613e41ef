// Package perfstat reads the output of perf stat, in every form that it has had
// since 2009. The forms are text for people, fields with a separator (-x), and JSON
// lines (-j). Counts are of a whole run or of intervals (-I). They may be split by
// logical processor, core, die, cluster, cache, socket, node, thread or cgroup. The
// content tells the form. Text around the counts is passed over: a mail, a page, the
// output of the measured program.
//
// It belongs to the third step of the flow
//
//	model → plan → source → counts → account → report
//
// It knows neither models nor formulas. It yields a [counts.Table] for each block or
// interval.
//
//	r := perfstat.NewReader(f, "counts.csv", perfstat.Options{})
//	for r.Next() {
//		use(r.Table())
//	}
//	if err := r.Err(); err != nil {
//		return err
//	}
//
// What perf derives from counts (ratios, rates, top-down shares) is not read: it is
// computed anew from the sums. docs/format/perf-stat.md describes each form, and how
// running times, groups and errors are taken from it.
//
// # What the package promises
//
// The names follow the compatibility rule of the module. A reader's memory does not grow
// with the number of intervals. No input makes it panic. A count that cannot be used is
// counted in [Stats] and named in a note. Errors have the file and line.
package perfstat
