package perfdata_test

import (
	"fmt"
	"log"
	"os"

	"github.com/cyclestack/cyclestack/source/perfdata"
)

func ExampleReader() {
	f, err := os.Open("testdata/plain.data")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	r, err := perfdata.NewReader(f, f.Name(), perfdata.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	samples, kernel := 0, 0
	for r.Next() {
		switch rec := r.Record().(type) {
		case *perfdata.Comm:
			fmt.Printf("thread %d is %s\n", rec.TID, rec.Comm)
		case *perfdata.Sample:
			samples++
			if rec.Mode() == perfdata.ModeKernel {
				kernel++
			}
		}
	}
	if err := r.Err(); err != nil {
		log.Fatal(err)
	}
	for _, e := range r.Events() {
		fmt.Printf("%d samples of %s, %d of them in the kernel\n", samples, e.Name, kernel)
	}
	fmt.Println(r.Features().Arch, r.Features().Cmdline[1:])
	// Output:
	// thread 21941 is perf-exec
	// thread 21941 is ls
	// 8 samples of cpu-clock, 7 of them in the kernel
	// x86_64 [record -q -F 2000 -e cpu-clock -o plain.data ls -R /usr/include/linux]
}

func ExampleTableReader() {
	f, err := os.Open("testdata/stat.data")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	r := perfdata.NewTableReader(f, f.Name(), perfdata.TableOptions{})
	for r.Next() {
		t := r.Table()
		fmt.Printf("%s: %s\n", r.Kind(), t.Label)
		for j, column := range t.Columns {
			c := t.Cell(0, j)
			fmt.Printf("%s: %g, %v\n", column.Event, c.Value, c.State)
		}
	}
	if err := r.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// perf-stat-record: true
	// task-clock: 0.691769, counted
	// page-faults: 48, counted
	// cycles: 0, not supported
}
