package ostime_test

import (
	"fmt"
	"os"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/source/ostime"
)

func Example() {
	w := ostime.New(os.DirFS("/"), ostime.Spec{PIDs: []int{os.Getpid()}})
	defer w.Close()
	w.Attach()
	// … another source counts meanwhile
	counted := counts.NewTable(&counts.Layout{Scopes: []counts.Scope{counts.RunScope("")}})
	table := w.Join(counted)
	fmt.Println(table.Columns[0].Event, table.Columns[2].Event)
	// Output: thread_time runqueue_wait
}
