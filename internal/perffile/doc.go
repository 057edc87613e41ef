// Package perffile has the numbers of the perf.data format: types of records, parts of
// samples, flags of events, sections of the header, and the encoding of memory accesses.
// Package perfdata reads with them, perfwrite writes, and perfevent asks the kernel.
package perffile
