// Command table prints how the stated errors of multiplexed counts do on simulated
// programs: coverage and width by kind of program, length of a turn and interval.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/cyclestack/cyclestack/internal/multiplex"
)

func main() {
	cpu := flag.String("cpu", "skylakex", "the processor whose plan is counted")
	level := flag.Int("level", 2, "the level of the plan: more levels have more groups")
	runs := flag.Int("runs", 100, "runs for each cell of the table")
	flag.Parse()
	rows, err := multiplex.Rows(*cpu, *level, *runs, multiplex.Turns)
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
	fmt.Print(multiplex.Table(rows))
}
