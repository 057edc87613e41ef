package emulator

import (
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// How many blocks a window has, and how many of the first fill the machines and do not count.
const (
	windowBlocks = 400
	fillBlocks   = 100
)

// A detailed is the model of a core that executes the windows of a thread, three times: with
// branches predicted and data in the first-level cache, with the predictor's mispredictions,
// and with the caches as well. The differences are what mispredictions and caches cost.
type detailed struct {
	run               *run
	caches            *caches.Hierarchy
	ideal, real, full *pipeline.Machine

	id     int32   // of the window
	seen   int     // blocks of the window
	number uint32  // of the instruction that is executed
	each   float64 // how many executions one in the window stands for
	sums   amounts
	before *instruction // the latest that counts
	wrong  *instruction // the branch that was mispredicted last, in the part that counts
	skew   int64        // cycles of repetitions, which the machines do not execute

	walks lane                   // of page walks
	bus   [caches.Levels]lane    // of lines from a level; at the first, of stores past the caches
	backs [caches.Levels]float64 // lines written that have not been in their lane
	ready [1 << 12]arrival       // of lines that were prefetched in the window
	began int64                  // when the window did
	until [2]int64               // when the line of the current load, and store, arrives
	join  int64                  // when that of the current load arrives, which one before has asked for
	asked uint64                 // the line that the current load asks for; 0 if it is there
	sets  sets
}

// An arrival is when a line arrives, and when a prefetch instruction asked for it; 0 if none did.
type arrival struct {
	line      uint64
	at, asked int64
	load      bool // a load asked for it
}

// An early is how an instruction's lines were asked for in windows.
type early struct {
	asked, missed int32 // of its accesses: those that a prefetch went before, and misses without
	lead          int64 // the sum of cycles from prefetch to access
}

func newDetailed(r *run, h *caches.Hierarchy) *detailed {
	c := r.options.Core
	d := &detailed{run: r, caches: h, sets: newSets(c.SameSet(), r.options.Caches), ideal: pipeline.NewMachine(c), real: pipeline.NewMachine(c), full: pipeline.NewMachine(c)}
	d.real.Follow(d.ideal)
	d.full.Follow(d.ideal)
	return d
}

func (d *detailed) machines() [3]*pipeline.Machine {
	return [...]*pipeline.Machine{d.ideal, d.real, d.full}
}

func (d *detailed) begin(each float64) {
	for _, m := range d.machines() {
		m.Reset()
	}
	d.run.begun++
	d.id = d.run.begun
	d.each, d.seen, d.sums, d.before, d.wrong, d.skew = each, 0, amounts{}, nil, nil, 0
	clear(d.bus[:])
	d.walks, d.backs = lane{}, [caches.Levels]float64{}
	d.began = d.full.Now()
	clear(d.ready[:])
	d.sets.clear()
}

func (d *detailed) end() {
	if d.sums.instructions > 0 {
		d.run.whole.now = d.sums
		d.run.whole.close()
		for _, v := range d.sums.cycles {
			d.run.cycles += v * windowBlocks / (windowBlocks - fillBlocks)
		}
		d.run.shared.Time(d.run.cycles)
		d.run.progress()
	}
	d.seen, d.sums = 0, amounts{}
}

// lost ends the sequence of instructions: it is not known what the thread did.
func (d *detailed) lost() { d.before = nil }

// block executes a block.
func (d *detailed) block(b *block, accesses []access, taken, missed bool) {
	d.seen++
	counts := d.seen > fillBlocks
	if b.of == nil {
		b.of = d.run.code.function(b.image, b.start-b.bias)
	}
	next := 0
	for i, n := range b.insts {
		in := d.run.code.watch(d.run.code.inst(n))
		d.number = n
		first := next
		for next < len(accesses) && int(accesses[next].place) <= i {
			next++
		}
		own := accesses[first:next]
		in.watched += d.each
		in.of = b.of
		for k := range own {
			in.accesses[at(own[k].store)] += d.each
		}
		last := i == len(b.insts)-1
		if in.repeats && in == d.before && len(b.insts) == 1 {
			d.repeat(in, own, counts)
			continue
		}
		d.execute(in, own, taken && last, missed && last, counts)
	}
}

// execute executes an instruction. Its cycles are those that the core waited for the one
// before: they belong to that.
func (d *detailed) execute(in *instruction, accesses []access, taken, missed, counts bool) {
	if in.prefetches {
		d.ask(in)
	}
	late := d.access(in, accesses, counts)
	ideal := d.ideal.Execute(&in.op, taken, false)
	real := d.real.Execute(&in.op, taken, missed)
	if late[0] > 0 {
		d.full.Late(int(late[0]))
	}
	if late[1] > 0 {
		d.full.LateStore(int(late[1]))
	}
	d.full.Until(d.until[0]-d.skew, d.until[1]-d.skew)
	d.full.Join(d.join - d.skew)
	full := d.full.Execute(&in.op, taken, missed)
	if d.asked != 0 {
		d.ready[d.asked%uint64(len(d.ready))] = arrival{d.asked, d.full.Filled() + d.skew, 0, true}
	}
	if in.op.Stores {
		d.sets.stored(accesses, d.full.Stored()+d.skew)
	}
	wrong := d.wrong
	if missed {
		d.wrong = in
	}
	if !counts {
		d.before = in
		return
	}
	to := d.before
	if to == nil || to.timed == 0 {
		to = in
	}
	d.spend(to, costIdeal, ideal)
	d.spend(to, costWaits, full-real)
	// What comes later than without a misprediction is late because of it.
	if wrong != nil && wrong.timed > 0 {
		d.spend(wrong, costLost, real-ideal)
	} else {
		d.spend(to, costLost, real-ideal)
	}
	d.count(in)
	in.sampled += d.each * full
	d.before = in
}

// spend adds cycles to a cost of an instruction, of its function and of the window. They are of
// all executions that the window stands for.
func (d *detailed) spend(in *instruction, cost int, cycles float64) {
	cycles *= d.each
	now := in.of.in(d.id)
	if in.enter(d.id) {
		now.rest[cost] += cycles
	}
	*in.cost(cost) += cycles
	now.cycles[cost] += cycles
	d.sums.cycles[cost] += cycles
}

// count counts an execution of an instruction.
func (d *detailed) count(in *instruction) {
	now := in.of.in(d.id)
	if in.enter(d.id) {
		for cost, mean := range in.mean {
			now.rest[cost] -= d.each * mean
		}
	}
	in.timed += d.each
	now.instructions += d.each
	d.sums.instructions += d.each
}

// cost returns a cost of an instruction in windows.
func (in *instruction) cost(cost int) *float64 {
	return [...]*float64{costIdeal: &in.ideal, costLost: &in.lost, costWaits: &in.waits}[cost]
}

// repeat adds one more repetition of a string instruction. Copies and fills move 32 bytes a
// cycle, other instructions take two cycles for an element: A. Fog, Instruction tables.
func (d *detailed) repeat(in *instruction, accesses []access, counts bool) {
	cycles := 2.0
	for i := range accesses {
		if accesses[i].store {
			cycles = float64(accesses[i].size) / 32
		}
	}
	late := d.access(in, accesses, counts)
	wait, now := 0.0, d.full.Now()+d.skew
	if longest := max(late[0], late[1], d.until[0]-now, d.until[1]-now); longest > 0 { // lines are fetched several at a time
		wait = float64(longest) / repeatedMisses
	}
	d.skew += int64(cycles + wait)
	if !counts {
		return
	}
	d.spend(in, costIdeal, cycles)
	d.spend(in, costWaits, wait)
	d.count(in)
	in.sampled += d.each * (cycles + wait)
}

// repeatedMisses are how many lines a string instruction fetches at a time.
const repeatedMisses = 10

// access simulates the accesses of an instruction, and returns how many cycles its load and
// its store are late.
func (d *detailed) access(in *instruction, accesses []access, counts bool) (late [2]int64) {
	var load, store uint64
	now := d.full.Now() + d.skew
	loads := max(now, d.full.Addressed(&in.op)+d.skew) // when
	d.until, d.join, d.asked = [2]int64{}, 0, 0
	for i := range accesses {
		a := &accesses[i]
		if at := &load; !a.store && (*at == 0 || a.addr < *at) {
			*at = a.addr
		}
		if at := &store; a.store && (*at == 0 || a.addr < *at) {
			*at = a.addr
		}
		for addr := a.addr; addr < a.addr+uint64(a.size); addr = addr&^(1<<caches.LineBits-1) + 1<<caches.LineBits {
			when := loads
			if a.store {
				when = now
			}
			cycles, why := d.one(in, &access{addr: addr, back: a.back, store: a.store, held: a.held}, when)
			k := at(a.store)
			late[k] = max(late[k], cycles)
			if counts && why != ([parts]int64{}) {
				for reason, v := range why {
					in.late[reason] += d.each * float64(v)
				}
			}
		}
	}
	if len(accesses) > 0 {
		for _, m := range d.machines() {
			m.At(load, store)
			if a := &accesses[0]; a.known && !a.store {
				m.Loads(a.value)
			}
		}
	}
	if in.op.Loads && max(late[1], d.until[1]-now) > max(late[0], d.until[0]-now) { // of what modifies memory, the load waits
		late[0], late[1] = late[1], 0
		d.until[0], d.until[1] = d.until[1], 0
	}
	return late
}

// one simulates an access to a line, and returns how many cycles it is late, by reason.
func (d *detailed) one(in *instruction, a *access, now int64) (cycles int64, why [parts]int64) {
	l := &d.run.options.Latencies
	line := a.addr >> caches.LineBits
	past := int64(0)
	var got caches.Access
	if in.streams && a.store {
		got.Translation = d.caches.Stream(a.addr)
		past = d.past(a.addr, in.op.Size, now)
		d.full.StoresFrom(now + past - d.skew)
	} else {
		got = d.caches.Data(uint64(d.number), a.addr, a.held)
		if a.back != 0 {
			d.caches.Back(a.back)
		}
		d.run.code.count(in, got, a.store, d.caches.Moves())
	}
	begins := now
	if got.Level != caches.First {
		now = max(now, d.full.Room()+d.skew)
		var stores int64
		if begins, stores = d.sets.comes(line, a, now); stores != 0 {
			d.full.StoresFrom(stores - d.skew)
		}
	}
	switch got.Level {
	case caches.Second:
		why[lateL2] = d.move(caches.Second, now) + int64(l.L2)
	case caches.Third:
		why[lateL3] = d.move(caches.Third, now) + int64(l.L3)
	case caches.Memory:
		why[lateMemory] = d.move(caches.Memory, now) + int64(l.Memory)
	}
	switch got.Translation {
	case caches.Second:
		why[latePages] = int64(l.TLB)
	case caches.Third:
		why[latePages] = d.walks.wait(l.WalkEach, now) + int64(l.Walk)
	}
	less := int64(0)
	if got.Level >= caches.Third {
		less = d.early(in, now)
	}
	for _, reason := range []int{latePages, lateL3, lateMemory} {
		by := min(less, why[reason])
		why[reason], less = why[reason]-by, less-by
	}
	d.moves(now)
	for _, v := range why {
		cycles += v
	}
	why[lateMemory] += past
	if begins > now {
		d.until[at(a.store)] = max(d.until[at(a.store)], begins+cycles)
		why[lateL2+int(got.Level-caches.Second)] += begins - now
	}
	if got.Level != caches.First && !a.store {
		d.asked = line
	}
	if got.Level <= caches.Second {
		d.arriving(in, a, got.Level, now, &why)
	}
	return cycles, why
}

// arriving has an access wait for a line that is on its way already.
func (d *detailed) arriving(in *instruction, a *access, from caches.Level, now int64, why *[parts]int64) {
	line := a.addr >> caches.LineBits
	r := &d.ready[line%uint64(len(d.ready))]
	if r.line != line || r.load && (from != caches.First || a.store) {
		return
	}
	if !a.held && r.asked != 0 {
		in.early.asked++
		in.early.lead += now - r.asked
		r.asked = 0
	}
	left := r.at - now
	if left <= 0 {
		return
	}
	why[d.run.options.Latencies.level(left)] += left
	if r.load {
		d.join = max(d.join, r.at)
		return
	}
	d.until[at(a.store)] = max(d.until[at(a.store)], r.at)
	r.at = 0
}

// ask simulates a prefetch instruction. QEMU does not say its address. It is known if its registers
// are, from what the window has loaded before.
func (d *detailed) ask(in *instruction) {
	addr, at, ok := d.full.Asks(&in.op)
	if !ok {
		return
	}
	l := &d.run.options.Latencies
	now := at + d.skew
	got := d.caches.Ask(addr)
	late := int64(0)
	switch got.Translation {
	case caches.Second:
		late = int64(l.TLB)
	case caches.Third:
		late = d.walks.wait(l.WalkEach, now) + int64(l.Walk)
	}
	switch got.Level {
	case caches.Third:
		late += d.move(caches.Third, now) + int64(l.L3)
	case caches.Memory:
		late += d.move(caches.Memory, now) + int64(l.Memory)
	}
	d.moves(now)
	if got.Level >= caches.Third {
		line := addr >> caches.LineBits
		d.ready[line%uint64(len(d.ready))] = arrival{line, d.full.Miss(at, late) + d.skew, at + d.skew, false}
	}
}

// early returns how many cycles before its miss an instruction asks for a line. It is 0 if the prefetch would
// be in this window, or if most of the misses have none. The request has translated the address as well: Intel
// 64 and IA-32 Architectures Optimization Reference Manual, "Software Prefetch".
func (d *detailed) early(in *instruction, now int64) int64 {
	e := &in.early
	if e.asked == 0 {
		return 0
	}
	lead := e.lead / int64(e.asked)
	if now-d.began < lead {
		if e.asked > e.missed {
			return lead
		}
		return 0
	}
	e.missed++
	return 0
}

// move moves a line from a level as soon as that is free, and returns how long it waits.
func (d *detailed) move(from caches.Level, at int64) (waits int64) {
	return d.bus[from].wait(d.run.options.Latencies.line(from), at)
}

// past returns how long a store past the caches waits. A line of them is written when it is full. QEMU makes two
// accesses of a store of 16 bytes.
func (d *detailed) past(addr uint64, size uint8, now int64) (waits int64) {
	each, line := d.run.options.Core.Past()
	if addr&uint64(size-1) == 0 {
		waits = d.bus[caches.First].wait(each, now)
	}
	if addr&(1<<caches.LineBits-1) != 0 {
		return waits
	}
	return max(waits, d.write(caches.Memory, max(line, 1), now))
}

// write writes lines to a level, and returns how long the last of them waits. A part of one waits for the next.
func (d *detailed) write(to caches.Level, lines float64, now int64) (waits int64) {
	for d.backs[to] += lines; d.backs[to] >= 1; d.backs[to]-- {
		waits = d.move(to, now)
	}
	return waits
}

// level returns the level of a line that arrives in some cycles.
func (l *Latencies) level(in int64) (reason int) {
	switch {
	case in > int64(l.L3):
		return lateMemory
	case in > int64(l.L2):
		return lateL3
	}
	return lateL2
}

// line returns the cycles between two lines from a level.
func (l *Latencies) line(from caches.Level) float64 {
	return [caches.Levels]float64{caches.Second: l.L2Line, caches.Third: l.L3Line, caches.Memory: l.MemoryLine}[from]
}

// backShare is the time of a line that is written back, as a share of one that is read: a
// Redwood Cove reads 17.0 GB/s, and writes 10.7, where each line is read and written back.
const backShare = 0.6

// A lane is the times when a line or a page walk begins, one in each interval of some cycles. Loads ask for
// lines when their addresses are known, and not in the order of the program.
type lane [1 << 10]int64

// wait takes the first free interval from a cycle on, and returns how long that waits.
func (l *lane) wait(each float64, at int64) int64 {
	if each <= 0 {
		return 0
	}
	first := int64(float64(at)/each) + 1 // 0 is none
	for n := first; n < first+int64(len(l)); n++ {
		if taken := &l[n%int64(len(l))]; *taken != n {
			*taken = n
			return max(0, int64(float64(n-1)*each)-at)
		}
	}
	return int64(float64(len(l)) * each)
}

// moves moves the lines that the last access prefetched and wrote back.
func (d *detailed) moves(now int64) {
	l := &d.run.options.Latencies
	for _, m := range d.caches.Moves() {
		if m.From < caches.Third {
			continue
		}
		if m.Back {
			d.write(m.From, backShare, now)
			continue
		}
		at := now + d.move(m.From, now)
		latency := l.L3
		if m.From == caches.Memory {
			latency = l.Memory
		}
		d.ready[m.Line%uint64(len(d.ready))] = arrival{m.Line, at + int64(latency), 0, false}
	}
}
