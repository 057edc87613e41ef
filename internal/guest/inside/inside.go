// Package inside has tests that are run in guests, where there is a PMU: those of
// internal/guest compile them with the tag guest, and start them there.
//
// They hold counts to the truth of internal/guest/loop and, where the guest has it, to the
// kernel's own perf.
package inside
