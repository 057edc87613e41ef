// Package inside has tests that are run in guests, where there is a PMU: those of
// internal/guest start them there. Elsewhere they do nothing.
//
// The truth that they hold counts to is that of internal/guest/loop, and where the
// guest has one, the kernel's own perf.
package inside
