// Package samples yields the counts of places in the code from the samples of a
// perf.data file: events × periods for each module, function, line or
// instruction.
//
// It is the third step of the flow
//
//	model → plan → source → counts → account → report
//
// and knows no models. The records come from package perfdata, what a sample
// counts too; where its address is, says package profile. Each sample is looked
// at once and added to its place, so that memory follows the number of places
// that are told apart, and neither the number of samples nor the size of the
// file.
package samples
