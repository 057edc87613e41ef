// Package samples yields the counts of places in the code from the samples of a
// perf.data file: events × periods for each module, function, line or
// instruction.
//
// It is the third step of the flow
//
//	model → plan → source → counts → account → report
//
// and knows no models. Package perfdata reads the records and says what a sample
// counts. Package profile finds the place of an address. Each sample is read once
// and added to its place. Memory grows with the number of places, and not with the
// number of samples or the size of the file.
package samples
