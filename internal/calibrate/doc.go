// Package calibrate measures costs on the machine that it runs on: a core's clock, cache and
// memory latency, the cost of page walks, mispredicted branches and blocked store forwarding,
// and bandwidth.
//
// The accounts of the other packages divide cycles by multiplying counts with such
// penalties. Published penalties are those of other machines, and on virtual machines even
// the reported sizes of the caches are unreliable. Nothing here is looked up: every figure
// comes from running a loop, and the sizes of the caches come from steps in the measured
// latencies.
//
// No performance counters are needed. A sample counts only if the thread ran all of the
// time. Cycles are multiples of a chain of dependent additions that runs at the same time.
// Every figure is the best of many short samples, so that it can be measured on a busy
// machine. The spread of the best samples is the figure's error. What could not be measured
// is absent, with the reason.
//
//	result, err := calibrate.Run(ctx, calibrate.Options{})
//	for _, p := range result.Penalties() {
//		fmt.Println(p.Name, p.Value, p.Unit)
//	}
//
// A Result can be stored as JSON and read again with [Read].
package calibrate
