package pipeline

// A Core is what is known of a processor's core: how much it does in a cycle and how
// long it takes. Its units are cycles, and micro-ops as the vendor counts them when
// they are dispatched.
type Core struct {
	Name string // as in CoreOf

	fetch    int // micro-ops in a cycle from the cache of decoded ones
	queue    int // of those waiting for dispatch
	dispatch int // micro-ops in a cycle
	retire   int
	reorder  int // micro-ops between dispatch and retirement
	// schedule is how many wait for operands, of general and of vector registers.
	schedule, vectorSchedule int
	loadQueue, storeQueue    int
	refill                   int // from a mispredicted branch's execution to the dispatch of what is behind it

	// loads, vectorLoads, addresses, data and vectorData are the ports of loads and
	// of the two halves of stores.
	loads, vectorLoads, addresses, data, vectorData ports
	load, vectorLoad, indexed                       int // cycles from address to value, and more if it has an index
	forward, vectorForward                          int // from a store's data to the value that a load reads
	blocked                                         int // more after the store is in the cache, for a load that it cannot forward to
	// renames is how many stores are looked through for one whose data a load reads, so
	// that it need not wait for its address; 0 where the core does not do so.
	renames uint64

	callBubble int   // cycles more that a call and a return each take to be fetched
	ahead      int   // cycles that addresses to fetch may be known ahead of the fetch
	nops       bool  // a nop behind another instruction takes no room
	vector     uint8 // bytes of the widest vector that a port takes at once
	fuses      [fuseIncrement + 1]uint16
	costs      [classes]cost
}

// ports is a set of execution ports, one bit each.
type ports uint32

// A cost is what a class of instructions takes besides its accesses to memory.
type cost struct {
	slots   uint8 // micro-ops dispatched
	ops     uint8 // of those, how many go to a port
	ports   ports // each to one of these
	latency uint8
	hold    uint8 // cycles until the port takes another; 0 is 1
}
