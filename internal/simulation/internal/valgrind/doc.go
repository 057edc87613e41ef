// Package valgrind reads the files of valgrind's simulators, callgrind and cachegrind, of
// all versions, and runs programs under them.
//
// A simulator counts instructions, loads and stores, and misses of the caches and of the branch
// predictor that it imitates. It knows each count's function, line and, on request, instruction
// exactly. It needs no permission and no counters, and counts alike in all runs of a program
// that does the same. It knows nothing about time.
//
// A [Reader] turns a file into a [counts.Table]:
//
//	r := valgrind.NewReader(file, name, valgrind.Options{By: counts.Function})
//	for r.Next() {
//		use(r.Table())
//	}
//	err := r.Err()
//
// [Run] runs a program under a simulator, with the caches of a [Geometry]. [Follow] runs it
// under a tool that counts nothing, and reports the order of its code.
package valgrind
