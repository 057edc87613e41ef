//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
	"unsafe"
)

// A cost is a figure of the core: how much longer an operation of one program takes than
// one of another.
type cost struct {
	name, title, unit string

	// per is how often the cost is paid in each operation; 0 stands for once.
	per float64

	// programs returns the program that pays the cost and the baseline programs, which do
	// not. The baseline is their mean, or the empty loop if there are none. The error says
	// why this machine cannot measure it.
	programs func(p *places) (pays program, baseline []program, err error)
}

// costTable has the figures of the core that every architecture has; costsHere has the
// architecture's own.
var costTable = []cost{
	{
		name: "branch-mispredict", title: "mispredicted branch", unit: "cycles/branch", per: 0.5,
		// No predictor gets more than half of random bits right. The cost of branches that
		// always go the same way is subtracted.
		programs: func(p *places) (program, []program, error) {
			return p.branches(&p.random), []program{p.branches(&p.zeros), p.branches(&p.ones)}, nil
		},
	},
	{
		name: "taken-branch", title: "taken branch, predicted", unit: "cycles/branch",
		programs: func(*places) (program, []program, error) {
			return program{run: loopJumps, ops: jumpsPerLoop}, nil, nil
		},
	},
	{
		name: "call", title: "call and return", unit: "cycles/call",
		programs: func(*places) (program, []program, error) {
			return program{run: loopCalls, ops: bodiesPerLoop}, nil, nil
		},
	},
	{
		name: "store-forward", title: "load of what was just stored, from store to result", unit: "cycles/load",
		programs: func(p *places) (program, []program, error) { return p.forward(loopForward), nil, nil },
	},
	{
		name: "store-forward-part", title: "the same, of 4 bytes from the middle of 8: extra", unit: "cycles/load",
		programs: func(p *places) (program, []program, error) {
			return p.forward(loopForwardPart), []program{p.forward(loopForward)}, nil
		},
	},
	{
		name: "store-forward-blocked", title: "the same, of 8 bytes stored as two halves: extra", unit: "cycles/load",
		programs: func(p *places) (program, []program, error) {
			return p.forward(loopForwardJoin), []program{p.forward(loopForward)}, nil
		},
	},
	{
		name: "store-forward-overlap", title: "the same, of 8 bytes with 4 of them just stored: extra", unit: "cycles/load",
		programs: func(p *places) (program, []program, error) {
			return p.forward(loopForwardOverlap), []program{p.forward(loopForward)}, nil
		},
	},
	{
		name: "store-address", title: "load behind a store to an address not known yet: extra", unit: "cycles/load",
		programs: func(p *places) (program, []program, error) {
			late := program{run: loopStoreLate, a: p.at(0), b: p.at(p.page + p.page/2), ops: storesPerLate}
			early := late
			early.run = loopStoreEarly
			return late, []program{early}, nil
		},
	},
	{
		name: "alias-4k", title: "load 4 KiB from an earlier store: extra", unit: "cycles/load",
		programs: func(p *places) (program, []program, error) {
			self := p.pointer(0)
			aliased := program{run: loopStoreThenLoad, a: self, b: p.at(4096), ops: bodiesPerLoop}
			apart := aliased
			apart.b = p.at(4096 + 1024)
			return aliased, []program{apart}, nil
		},
	},
	{
		name: "split-line-load", title: "load across two cache lines: extra", unit: "cycles/load",
		programs: func(p *places) (program, []program, error) {
			return p.chase(16*lineBytes - 4), []program{p.chase(0)}, nil
		},
	},
	{
		name: "split-page-load", title: "load across two pages: extra", unit: "cycles/load",
		programs: func(p *places) (program, []program, error) {
			return p.chase(p.page - 4), []program{p.chase(0)}, nil
		},
	},
	{
		name: "split-line-store", title: "store across two cache lines: extra", unit: "cycles/store",
		programs: func(p *places) (program, []program, error) {
			return p.stores(16*lineBytes - 4), []program{p.stores(0)}, nil
		},
	},
	{
		name: "split-page-store", title: "store across two pages: extra", unit: "cycles/store",
		programs: func(p *places) (program, []program, error) {
			return p.stores(p.page - 4), []program{p.stores(0)}, nil
		},
	},
	{
		name: "divide-64", title: "division of 64-bit integers, latency", unit: "cycles/division",
		// The chain has an addition with each division.
		programs: func(*places) (program, []program, error) {
			return program{run: loopDivide64, ops: bodiesPerLoop}, []program{{run: loopAdds, ops: addsPerLoop}}, nil
		},
	},
	{
		name: "divide-32", title: "division of 32-bit integers, latency", unit: "cycles/division",
		programs: func(*places) (program, []program, error) {
			return program{run: loopDivide32, ops: bodiesPerLoop}, []program{{run: loopAdds, ops: addsPerLoop}}, nil
		},
	},
	{
		name: "divide-double", title: "division of doubles, latency", unit: "cycles/division",
		programs: func(p *places) (program, []program, error) {
			return program{run: loopDivideFloat, a: unsafe.Pointer(&p.value), b: unsafe.Pointer(&p.divisor), ops: bodiesPerLoop}, nil, nil
		},
	},
	{
		name: "denormal", title: "multiplication of a denormal double: extra", unit: "cycles/assist",
		programs: func(p *places) (program, []program, error) {
			return p.multiply(&p.denormal), []program{p.multiply(&p.value)}, nil
		},
	},
}

// places is the memory that the programs of the core use: some pages, which fit the first
// cache, and their other arguments.
type places struct {
	area                *memory
	page                int
	random, zeros, ones [branchWords]uint64
	word                uint64 // position after the last branches
	lists               [2]unsafe.Pointer
	used                int // of lists

	value, one, divisor, denormal float64
}

func newPlaces(area *memory, page int) *places {
	// The divisor is so near 1 that the quotient stays normal during any measurement. Its
	// fraction has no special case in the divider.
	p := &places{area: area, page: page, value: 1.5, one: 1, divisor: 1 + 0x1p-51 + 0x1p-52, denormal: 0x1p-1050}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range p.random {
		p.random[i], p.ones[i] = r.Uint64(), ^uint64(0)
	}
	return p
}

// reset clears what earlier programs have written.
func (p *places) reset() {
	clear(p.area.bytes[:4*p.page])
	p.used = 0
}

func (p *places) at(offset int) unsafe.Pointer { return p.area.at(offset) }

// pointer returns an address that holds itself.
func (p *places) pointer(offset int) unsafe.Pointer {
	address := p.at(offset)
	for i := range 8 { // it may lie across two lines
		p.area.bytes[offset+i] = byte(uintptr(address) >> (8 * i))
	}
	list := &p.lists[p.used]
	p.used++
	*list = address
	return address
}

// chase loads the pointer at an offset, which points to itself, again and again.
func (p *places) chase(offset int) program {
	p.pointer(offset)
	return program{run: loopChase, a: unsafe.Pointer(&p.lists[p.used-1]), ops: loadsPerChase}
}

func (p *places) stores(offset int) program {
	return program{run: loopStores, a: p.at(offset), ops: bodiesPerLoop}
}

func (p *places) forward(run loop) program {
	return program{run: run, a: p.at(lineBytes), b: p.at(lineBytes), ops: bodiesPerLoop}
}

func (p *places) branches(words *[branchWords]uint64) program {
	return program{run: loopBranches, a: unsafe.Pointer(words), b: unsafe.Pointer(&p.word), ops: branchesPerLoop}
}

func (p *places) multiply(by *float64) program {
	return program{run: loopMultiply, a: unsafe.Pointer(by), b: unsafe.Pointer(&p.one), ops: bodiesPerLoop}
}

// costs measures the figures of the core.
func (b *bench) costs(s *stage) error {
	p := newPlaces(b.big, ordinaryPage)
	table := append(append([]cost(nil), costTable...), costsHere()...)
	s.left = len(table) + len(peaks())
	for i := range table {
		b.result.Costs = append(b.result.Costs, b.cost(s, p, &table[i]))
	}
	b.peak(s)
	return nil
}

// ordinaryPage is the size of the page that splits are measured across; a huge page has no
// page boundary inside.
const ordinaryPage = 4096

func (b *bench) cost(s *stage, p *places, c *cost) Figure {
	f := Figure{Name: c.name, Title: c.title, Unit: c.unit}
	p.reset()
	pays, baseline, err := c.programs(p)
	if err != nil {
		s.left--
		return absent(f, err.Error())
	}
	if len(baseline) == 0 {
		baseline = []program{{run: loopEmpty, ops: pays.ops}}
	}
	t := b.timer.measure(s.budget(time.Second), append([]program{pays}, baseline...)...)[1:]
	for _, x := range t {
		if why := doubt(x); why != "" {
			return absent(f, why)
		}
	}
	per := c.per
	if per == 0 {
		per = 1
	}
	f.Value, f.Error = difference(t[0], t[1:], per)
	if uncertain(f.Value, f.Error) {
		return absent(f, fmt.Sprintf("%.1f cycles with an error of %.1f: within the noise", float64(f.Value), float64(f.Error)))
	}
	return f
}

// difference returns how much longer a program takes than the mean of others. The error
// is by the spread of the best samples.
func difference(pays timing, baseline []timing, per float64) (value, err Number) {
	v, e := pays.cycles, pays.cycles*pays.error()
	for _, t := range baseline {
		n := float64(len(baseline))
		v -= t.cycles / n
		e += t.cycles * t.error() / n
	}
	return Number(v / per), Number(math.Abs(e / per))
}
