package c2c_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cyclestack/cyclestack/internal/c2c"
	"github.com/cyclestack/cyclestack/internal/perffile"
)

const (
	load  = perffile.DataSrc(perffile.OpLoad)
	store = perffile.DataSrc(perffile.OpStore)
)

// use is an access of a thread to bytes of the line at 0x1000.
func use(tid, offset, width int, writes bool) *c2c.Access {
	a := &c2c.Access{Source: load | perffile.SrcL1, Addr: 0x1000 + uint64(offset), Width: width, PID: 7, TID: tid, CPU: tid, Node: tid % 2, IP: 0x400000 + uint64(offset)}
	if writes {
		a.Source, a.Store = store|perffile.SrcL1, true
	}
	return a
}

// TestSharing judges how two threads share a line.
func TestSharing(t *testing.T) {
	for _, c := range []struct {
		name string
		list []*c2c.Access
		want string
	}{
		{"one thread", []*c2c.Access{use(1, 0, 8, true), use(1, 8, 8, false)}, "[]"},
		{"two readers", []*c2c.Access{use(1, 0, 8, false), use(2, 0, 8, false)}, "[]"},
		{"neighbours", []*c2c.Access{use(1, 0, 8, true), use(2, 8, 8, false)}, "[false]"},
		{"the same bytes", []*c2c.Access{use(1, 0, 8, true), use(2, 0, 8, false)}, "[true]"},
		{"a wide load over a narrow store", []*c2c.Access{use(1, 4, 4, true), use(2, 0, 8, false)}, "[true]"},
		{"both", []*c2c.Access{use(1, 0, 8, true), use(2, 0, 8, false), use(3, 32, 8, false)}, "[both]"},
		{"up to the end of the line", []*c2c.Access{use(1, 60, 8, true), use(2, 0, 4, false)}, "[false]"},
	} {
		l := c2c.New(64)
		for _, a := range c.list {
			l.Add(a)
		}
		var got []string
		for _, x := range l.Shared() {
			got = append(got, x.Sharing.String())
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// TestProcesses: the same address of two processes is two lines, unless its physical
// address is known or it is the kernel's.
func TestProcesses(t *testing.T) {
	for _, c := range []struct {
		addr, phys uint64
		want       int
	}{{0x1000, 0, 0}, {0x1000, 0x77000, 1}, {0xffff800000001000, 0, 1}} {
		l := c2c.New(64)
		for pid := 1; pid <= 2; pid++ {
			a := use(pid, 0, 8, pid == 1)
			a.PID, a.Addr, a.Phys = pid, c.addr, c.phys
			l.Add(a)
		}
		if got := len(l.Shared()); got != c.want {
			t.Errorf("%#x, %#x: %d shared lines, want %d", c.addr, c.phys, got, c.want)
		}
	}
}

// TestSums: the counts of places add up to those of their line. Those of lines and of the
// others add up to all, whatever the sources are, and there are bounds.
func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	l := c2c.New(0)
	for range 100_000 {
		a := use(rng.IntN(3000), rng.IntN(64), 1<<rng.IntN(7), rng.IntN(2) == 0)
		a.Addr += 64 * rng.Uint64N(200_000)
		a.Source |= perffile.DataSrc(rng.Uint64())
		l.Add(a)
	}
	records, hitm := l.Others.Records, l.Others.HITM()
	for _, x := range l.Shared() {
		sum := int64(0)
		for _, p := range x.Places {
			sum += p.Records
		}
		if sum > x.Records || x.Threads < 1 || len(x.Nodes) < 1 {
			t.Fatalf("line %#x: %d records, %d in places, %d threads", x.Addr, x.Records, sum, x.Threads)
		}
		records, hitm = records+x.Records, hitm+x.HITM()
	}
	if l.All.Records != 100_000 || records > l.All.Records || hitm != l.All.HITM() || l.Others.Records == 0 || l.Size != 64 {
		t.Errorf("%d records, %d in shared lines and others; %d and %d modified elsewhere; %d others", l.All.Records, records, l.All.HITM(), hitm, l.Others.Records)
	}
}

// TestNewLevels: a data source with only the newer field of levels counts as well.
func TestNewLevels(t *testing.T) {
	l := c2c.New(64)
	a := use(1, 0, 8, false)
	a.Source = load | perffile.DataSrc(perffile.LevelL3)<<33 | perffile.SnoopHitM.Src()
	l.Add(a)
	if l.All.LocalHITM != 1 {
		t.Errorf("%+v", l.All)
	}
}
