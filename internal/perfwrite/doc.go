// Package perfwrite writes perf.data files that perf and package perfdata read, into a
// file or into a pipe.
package perfwrite
