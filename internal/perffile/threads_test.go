package perffile_test

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/perffile"
)

// TestThreads has the records of processors come in another order than they were made.
func TestThreads(t *testing.T) {
	for _, tt := range []struct {
		name, records string // "tid=name@time" is said, "tid<maker@time" a fork
		want          string
	}{
		{"in order", "1=sh@1 1=waits@5 2<1@7 3<2@8", "1=waits 2=waits 3=waits"},
		{"exec's name late", "1=sh@1 2<1@7 3<2@8 1=waits@5", "1=waits 2=waits 3=waits"},
		{"renamed after the fork", "1=sh@1 2<1@4 1=waits@5", "1=waits 2=sh"},
		{"maker known later", "2<1@4 1=waits@3", "1=waits 2=waits"},
		{"maker known and renamed later", "2<1@4 1=waits@5", "1=waits 2=waits"},
		{"its own", "1=sh@1 2<1@4 2=io@6 1=waits@3", "1=waits 2=io"},
		{"its own, late", "2=io@6 2=old@3 2<1@4 1=waits@3", "1=waits 2=io"},
		{"no times", "1=sh@0 2<1@0 1=waits@0", "1=waits 2=sh"},
		{"in a circle", "2<1@4 1<2@5 3<3@6", "1= 2= 3="},
		{"idle", "", "0=swapper 1="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var threads perffile.Threads
			for _, r := range strings.Fields(tt.records) {
				what, at, _ := strings.Cut(r, "@")
				time := uint64(at[0] - '0')
				if tid, name, said := strings.Cut(what, "="); said {
					threads.Say(int(tid[0]-'0'), time, []byte(name))
				} else {
					threads.Fork(int(what[0]-'0'), int(what[2]-'0'), time)
				}
			}
			for _, w := range strings.Fields(tt.want) {
				tid, name, _ := strings.Cut(w, "=")
				if got := threads.Name(int(tid[0] - '0')); got != name {
					t.Errorf("%s: called %q, want %q", tid, got, name)
				}
			}
		})
	}
}
