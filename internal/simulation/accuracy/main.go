// Accuracy compares the core model with measured and reference cycles of basic blocks:
//
//	go run ./internal/simulation/accuracy FOLDER
//
// FOLDER has CSV files of blocks, one in a line: hexadecimal code, then cycles.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	var o options
	flag.StringVar(&o.half, "half", "", "only the blocks of one half: tuning or test")
	flag.IntVar(&o.worst, "worst", 0, "print so many of the worst blocks of each set")
	flag.BoolVar(&o.classes, "classes", false, "print the errors by class of instruction")
	flag.StringVar(&o.set, "set", "", "only the sets whose name has this `text`")
	flag.BoolVar(&o.mca, "mca", false, "also ask llvm-mca, if it is installed")
	flag.BoolVar(&o.dump, "dump", false, "print every block: set, half, code, reference, model")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: accuracy [flags] FOLDER")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}
