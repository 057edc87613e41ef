// Package calibrate measures what things cost on the machine it runs on: the clock
// of a core, the latency of its caches and memory, of page walks, mispredicted
// branches, blocked store forwarding and the like, and the bandwidth of memory.
//
// The accounts of the other packages divide cycles by multiplying counts with such
// penalties. Published ones are those of other machines; on virtual machines even
// the sizes of the caches that the processor reports are not to be believed. Nothing
// here is looked up: every figure comes from running a loop, and the sizes of the
// caches from where the measured latencies change.
//
// No performance counters are needed. Time counts while the thread's processor time
// goes on, cycles are its multiples of a chain of dependent additions that runs at the
// same time, and every figure is the best of many short samples, so that it is also found
// on a machine that is busy with other things. How well the best samples agree is
// the figure's error. What could not be measured is absent, with the reason.
//
//	result, err := calibrate.Run(ctx, calibrate.Options{})
//	for _, p := range result.Penalties() {
//		fmt.Println(p.Name, p.Value, p.Unit)
//	}
//
// A Result can be stored as JSON and read again with [Read].
package calibrate
