package pipeline

// A Core is the model of a processor's core: how much it does in a cycle and how long it
// takes. Its units are cycles, and micro-ops as the vendor counts them at dispatch.
type Core struct {
	Name string // as in CoreOf
	Arch string // its instructions: amd64 or arm64

	frontEnd
	legacyFrontEnd
	backEnd
	memoryUnits
	fuses     [fuseIncrement + 1]uint16
	fused     ports // of a jump and an instruction that also writes a register; 0 for the jump's
	costs     [forms]cost
	portNames []string
	trust     [classes]Trust
	about     []string // what the files say of the core, and of those that it extends
}

// A frontEnd is the part of a core that fetches instructions.
type frontEnd struct {
	fetch      int   // micro-ops in a cycle from the cache of decoded ones
	cached     int   // micro-ops of a loop that fit into that cache; 0 is any number
	decode     int   // as fetch, from the decoders, of a loop that does not fit
	line       uint8 // bits of an address within a line of that cache; 64 is any number
	queue      int   // micro-ops that wait for dispatch
	refill     int   // from a mispredicted branch's execution to the next dispatch
	callBubble int   // cycles more until the code of a called function is fetched
	ahead      int   // cycles that addresses may be predicted ahead of the fetch
	syncs      bool  // RSP needs a micro-op when it is used after pushes and pops
	nops       bool  // a nop behind another instruction takes no room
}

// A backEnd is the part of a core that dispatches, executes and retires micro-ops.
type backEnd struct {
	dispatch   int // micro-ops in a cycle
	retire     int
	callEnds   bool // a call is the last that is retired in its cycle
	reorder    int  // micro-ops between dispatch and retirement
	schedulers []scheduler
	inTurn     bool  // schedulers get computations in turn, and accesses to memory apart: see queues.next
	held       int64 // cycles that a micro-op keeps its entry after it goes to a port
	loadsApart bool  // an instruction that loads does not become one with a jump behind it
	// If vectors have their own schedulers, vectorQueue micro-ops wait for room in one, without
	// keeping others from dispatch.
	vectorSchedulers []scheduler
	vectorQueue      int
	vectorPorts      ports // of the vectors' schedulers
	moves            int   // values that may have several names: see aliases; 0 for any number
	binds            bool  // a micro-op gets its port at dispatch
	delay            int64 // cycles from dispatch to execution at least
	lateConvert      int64 // as lateIndex, what a conversion from a general register keeps
	lateIndex        int64 // cycles that a lea of three parts needs its index after its base
	lateAddend       int64 // as lateIndex, what a multiplication of floating point adds to
	lateSum          int64 // as lateIndex, what a multiplication of vectors of integers adds to
	sums             int64 // cycles that a sum of floating point is known earlier to another sum
	lateMerge        bool  // what a scalar operation keeps of a register is not waited for
	vector           uint8 // bytes of the widest vector that a port takes at once
}

// memoryUnits are the parts of a core that load and store.
type memoryUnits struct {
	loadQueue, storeQueue int
	storeHeld             int64 // cycles that a store keeps its entry after it reaches the cache
	pendingLoads          int   // loads whose address or data is not known yet, at most; 0 for any number
	misses                int   // loads that wait for another cache at a time, or lines of it
	walkers               int   // page walks at a time; 0 is two
	aheadLines            int   // that the prefetcher of the second level looks ahead; 0 is typical
	tlbs                  [2][2]int
	nextLine              bool // the second level fetches the line behind one of the third
	sameSet               SameSet
	past                  [2]float64 // see Past

	// loads, vectorLoads, addresses, data and vectorData are the ports of loads and
	// of the two halves of stores.
	loads, vectorLoads, addresses, data, vectorData ports
	indexedAddresses                                ports // of stores with an index, if they have fewer
	chased                                          int   // as load, if the address is a loaded value with a small displacement; 0 is load
	load, vectorLoad, indexed                       int   // cycles from address to value, and more with an index
	forward, vectorForward                          int   // from a store's data to the value that a load reads
	blocked                                         int   // more after the store is in the cache, for a load that it cannot forward to
	// renames is how many stores are searched for the data of a load before the addresses
	// are known; 0 if the core does not do so.
	renames    uint64
	forwarding ports // what a load occupies for a cycle that has a store's data
	// lockFill is how many cycles a locked instruction waits for each line on its way to the
	// first-level cache. lockValue is the same for the value that it returns.
	lockFill, lockValue int64
	streamed            int // micro-ops of a loop that comes from the queue, at most
	// streams is the micro-ops of a loop that comes from the queue at all. If that takes
	// streamEnds branches or more, its end is mispredicted.
	streams, streamEnds int
	erratum             bool  // a microcode update does not cache jumps at the end of 32 bytes
	uncachesJumps       bool  // that update is in use
	alias               int64 // cycles more of a load that meets a store to the same place of another page
	links               int64 // loads in a cycle that get a store's data so
	renamesBytes        bool  // also of a byte or two
	renamesIndexed      bool  // also with an index in the address
	named               bool  // in code that is new, the addresses have to be of the same registers, unchanged
	scaled              int64 // cycles more of a lea with a scaled index
	written             uint8 // bits of an address within the part of a line that stores write in a cycle
	banked              bool  // two loads of a bank in a cycle: see banks
	joined              int   // stores to that part in a cycle at most; 0 for any number
}

// A scheduler holds ops until their operands are known and a port is free.
type scheduler struct {
	size  int
	ports ports // that it feeds
}

// home returns the ports that decide an op's scheduler: those that compute, or else those
// that compute an address.
func (c *Core) home(op *Op, k *cost) ports {
	if k.ops > 0 {
		return k.ports
	}
	return c.accessPorts(op)
}

// accessPorts returns the ports that compute the address of an op's access to memory.
func (c *Core) accessPorts(op *Op) ports {
	switch {
	case op.Loads && op.vector:
		return c.vectorLoads
	case op.Loads:
		return c.loads
	case op.Stores:
		return c.addresses
	}
	return 0
}

// never is a lateness of what is not waited for.
const never = 1 << 20

// lateness returns how much later an op needs a register than its other operands: earlier,
// if it is below 0.
func (c *Core) lateness(op *Op, r Register) int64 {
	switch {
	case r != op.late || r == NoRegister:
		return 0
	case c.costs[op.form].late != 0:
		return int64(c.costs[op.form].late)
	case !op.vector:
		return c.lateIndex
	case op.Class == FMA:
		return c.lateAddend
	case op.Class == VMul:
		return c.lateSum
	case op.Class == ConvertFromGPR && !c.lateMerge:
		return c.lateConvert
	case c.lateMerge:
		return never
	}
	return 0
}

// ports is a set of execution ports, one bit each.
type ports uint32

// A cost is the cost of a form of instructions without accesses to memory.
type cost struct {
	slots                   uint8 // micro-ops dispatched
	ops                     uint8 // of those, how many go to a port
	latency                 uint8
	late                    int8    // cycles that its late operand is needed later than the others; below 0, earlier
	hold                    uint8   // cycles until the port takes another; 0 is 1
	leastLatency, leastHold uint8   // of a division whose quotient has no bits; latency and hold are for most bits
	ports                   ports   // the first op goes to one of these, and the others if they have no own
	others                  []ports // of the second op and those after it
	unit                    ports   // the first op also occupies this, and it is what hold is about
}

// portsOf returns the ports of the op with an index.
func (k *cost) portsOf(i int) ports {
	if i > 0 && i <= len(k.others) {
		return k.others[i-1]
	}
	return k.ports
}
