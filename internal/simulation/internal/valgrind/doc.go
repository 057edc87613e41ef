// Package valgrind reads what valgrind's simulators write, callgrind's and
// cachegrind's files of all versions, and runs programs under them.
//
// A simulator counts: instructions, loads and stores, misses of the caches and of
// the branch predictor that it imitates. It knows each count's function, line and,
// if asked, instruction exactly, needs no permission and no counters, and counts the
// same in every run of a program that does the same. It knows nothing about time.
//
// A [Reader] turns a file into a [counts.Table]:
//
//	r := valgrind.NewReader(file, name, valgrind.Options{By: counts.Function})
//	for r.Next() {
//		use(r.Table())
//	}
//	err := r.Err()
//
// [Run] runs a program under a simulator, with the caches of a [Geometry]. [Follow] runs
// it under one that counts nothing, and tells in which order which code is executed.
package valgrind
