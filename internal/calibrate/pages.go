//go:build linux && (amd64 || arm64 || ppc64le || riscv64)

package calibrate

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pages measures the cost of finding a page. It subtracts two latencies: of loads that
// visit one line of each of many pages, and of loads of as many adjacent lines. Those have
// the same caches but few pages.
func (b *bench) pages(s *stage) error {
	small := os.Getpagesize()
	// An entry of the page table for each page, a line of them, a table of them.
	strides := []int{1, 8, 512}
	if b.options.Quick {
		strides = strides[:2]
	}
	const most = 8192 // twice what the largest TLBs have; the lines still fit L2
	counts := pageCounts(most)
	huge := []int(nil)
	if b.big.page > small {
		huge = pageCounts(len(b.big.bytes) / b.big.page)
	}
	s.left = len(strides)*len(counts) + len(huge)
	for _, stride := range strides {
		if err := b.pageCurve(s, small, stride, counts); err != nil {
			return err
		}
	}
	if len(huge) > 0 {
		b.addPageCurve(s, b.big.at(0), b.big.page, 1, huge)
	}
	b.pageFigures()
	return nil
}

// pageCounts returns the numbers of pages that are visited: two to the octave.
func pageCounts(most int) []int {
	var list []int
	for n := 8; n <= most; n *= 2 {
		list = append(list, n)
		if n*3/2 <= most {
			list = append(list, n*3/2)
		}
	}
	return list
}

// pageCurve measures with ordinary pages. Only those that are visited exist.
func (b *bench) pageCurve(s *stage, page, stride int, counts []int) error {
	const span = 4 << 30 // of addresses
	for len(counts) > 0 && counts[len(counts)-1]*stride*page > span {
		counts = counts[:len(counts)-1]
	}
	most := counts[len(counts)-1]
	area, err := unix.Mmap(-1, 0, most*stride*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		b.result.PageCurves = append(b.result.PageCurves, PageCurve{PageBytes: page, Stride: stride, Points: []PagePoint{}})
		b.note(fmt.Sprintf("pages %d apart: no addresses for them: %v", stride, err))
		return nil
	}
	defer func() { _ = unix.Munmap(area) }()
	_ = unix.Madvise(area, unix.MADV_NOHUGEPAGE) // fails if there are none
	if b.result.Node >= 0 {
		if err := bind(area, b.result.Node); err != nil {
			return err
		}
	}
	b.addPageCurve(s, unsafe.Pointer(&area[0]), page, stride, counts)
	return nil
}

func (b *bench) addPageCurve(s *stage, base unsafe.Pointer, page, stride int, counts []int) {
	curve := PageCurve{PageBytes: page, Stride: stride}
	for _, n := range counts {
		curve.Points = append(curve.Points, b.pagePoint(s, base, page, stride, n))
	}
	b.result.PageCurves = append(b.result.PageCurves, curve)
}

func (b *bench) pagePoint(s *stage, base unsafe.Pointer, page, stride, n int) PagePoint {
	if b.timer.late() {
		return absentPagePoint(n, noTime)
	}
	// The lines are at different offsets in their pages: at the same offset all of them
	// would fall into few sets of the caches.
	apart := b.chaser.cycle(base, n, func(i int) int { return i*stride*page + i*lineBytes%page })
	other := newChaser()
	dense := other.cycle(b.big.at(0), n, func(i int) int { return i * lineBytes })
	if uintptr(base) == uintptr(b.big.at(0)) { // the same memory: the lists must not meet
		dense = other.cycle(b.big.at(0), n, func(i int) int { return i*lineBytes + lineBytes/2 })
	}
	rounds := uint64(n/loadsPerChase + 1)
	budget := s.budget(400*time.Millisecond) / 2
	far, near := b.list(apart, rounds, budget), b.list(dense, rounds, budget)
	for _, t := range []timing{far, near} {
		if why := doubt(t); why != "" {
			return absentPagePoint(n, why)
		}
	}
	return PagePoint{Pages: n, Cycles: Number(far.cycles - near.cycles), Error: Number(far.cycles*far.error() + near.cycles*near.error())}
}

func absentPagePoint(n int, why string) PagePoint {
	return PagePoint{Pages: n, Cycles: unknown, Error: unknown, Why: why}
}

// list times a list. Only the clock runs in turn with it, so that nothing else is in the
// caches.
func (b *bench) list(p program, rounds uint64, budget time.Duration) timing {
	p.run(2*rounds, p.a, p.b, p.c)
	p.least, p.warm = min(rounds, longSample), rounds
	return b.timer.measure(budget, p)[1]
}

// pageFigures reads the costs from the curve of adjacent pages. If the walks show no
// level ground there, it tries pages with a line of the page table each: they exceed a
// TLB much earlier.
func (b *bench) pageFigures() {
	second, walk := pageCosts(b.result.PageCurves[0].Points, b.l1())
	if !walk.Known() {
		if _, apart := pageCosts(b.result.PageCurves[1].Points, b.l1()); apart.Known() {
			walk = apart
		}
	}
	b.result.Costs = append(b.result.Costs, second, walk)
}

// l1 is the latency of the first cache, or 4 cycles, which is usual.
func (b *bench) l1() float64 {
	if level := b.result.Level("L1"); level != nil {
		return float64(level.Cycles)
	}
	return 4
}
