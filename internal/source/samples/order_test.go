package samples_test

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/internal/source/samples"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A happening is a record of a recording, which some processor wrote at a time.
type happening struct {
	time  uint64
	cpu   int
	write func(r *recording)
}

// happenings are what three processes do: they are mapped into, replaced, forked and
// sampled.
func happenings(t *rapid.T) []happening {
	var list []happening
	pid := rapid.IntRange(41, 43)
	for i := range rapid.IntRange(1, 300).Draw(t, "records") {
		time, p := uint64(100+10*i), pid.Draw(t, "pid")
		addr := uint64(rapid.IntRange(1, 3).Draw(t, "address") << 16)
		h := happening{time: time, cpu: rapid.IntRange(0, 2).Draw(t, "cpu")}
		switch rapid.IntRange(0, 19).Draw(t, "what") {
		case 0, 1:
			h.write = func(r *recording) { r.mmap(time, p, addr, fmt.Sprintf("/bin/f%d", i)) }
		case 2:
			h.write = func(r *recording) {
				r.add(time, &perfdata.Comm{Header: perfdata.Header{Misc: perffile.MiscCommExec}, PID: p, TID: p, Comm: []byte("new")})
				mapAll(r, time, p, fmt.Sprintf("/bin/new%d", i))
			}
		case 3:
			parent := pid.Draw(t, "parent")
			h.write = func(r *recording) {
				r.add(time, &perfdata.Task{Header: perfdata.Header{Type: perffile.RecordFork}, PID: p, TID: p, PPID: parent, PTID: parent, Time: time})
			}
		default:
			id, value := uint64(rapid.IntRange(1, 2).Draw(t, "event")), uint64(rapid.IntRange(1, 1000).Draw(t, "period"))
			h.write = func(r *recording) { r.sample(id, p, addr+uint64(i%3), time, value, user) }
		}
		list = append(list, h)
	}
	return list
}

// mapAll maps everything that is sampled: a first mapping also counts for earlier samples that
// still wait.
func mapAll(r *recording, time uint64, pid int, file string) {
	for _, addr := range []uint64{1 << 16, 2 << 16, 3 << 16} {
		r.mmap(time, pid, addr, file)
	}
}

// TestShuffled reads records out of order: in rounds, one processor's after the other's.
// The tables are those of a file in order of time, with one processor and with several,
// for every split.
func TestShuffled(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		list := happenings(rt)
		inOrder, shuffled := newRecording(t, sampleType, "cycles", "other"), newRecording(t, sampleType, "cycles", "other")
		for _, r := range []*recording{inOrder, shuffled} {
			for pid := 41; pid <= 43; pid++ {
				mapAll(r, 0, pid, "/bin/first")
			}
			r.sample(1, 41, 0x10000, 1, 1, user) // where the recording begins
		}
		for _, h := range list {
			h.write(inOrder)
		}
		for len(list) > 0 {
			round := list[:rapid.IntRange(1, len(list)).Draw(rt, "round")]
			list = list[len(round):]
			slices.SortStableFunc(round, func(a, b happening) int { return a.cpu - b.cpu })
			for _, h := range round {
				h.write(shuffled)
			}
			shuffled.round()
		}
		files := [][]byte{inOrder.bytes(), shuffled.bytes()}
		for _, within := range []counts.By{0, counts.By(0).With(counts.Thread), counts.By(0).With(counts.Interval)} {
			var want map[string][]float64
			for i, b := range files {
				for _, procs := range []int{1, 2} {
					before := runtime.GOMAXPROCS(procs)
					r := samples.NewReader(bytes.NewReader(b), "test.data", samples.Options{By: counts.Module, Within: within, Interval: 500,
						Symbols: profile.Config{Root: root}})
					got := cells(tableOf(t, r))
					runtime.GOMAXPROCS(before)
					if want == nil {
						want = got
					}
					if d := cmp.Diff(want, got); d != "" {
						rt.Fatalf("shuffled %v, %d processors, within %v: (-want +got)\n%s", i > 0, procs, within, d)
					}
				}
			}
		}
	})
}

// cells are the values and variances of a table by thread, interval and module. Names
// of threads are what is known of them in the end.
func cells(t *counts.Table) map[string][]float64 {
	out := map[string][]float64{}
	for i := range t.Scopes {
		s := &t.Scopes[i]
		label := "all"
		if s.Code != nil {
			label = fmt.Sprintf("%d %v %s", s.TID, s.Start, s.Code.Module)
		}
		for _, c := range t.Row(i) {
			out[label] = append(out[label], c.Value, c.Variance, float64(c.Samples))
		}
	}
	return out
}
