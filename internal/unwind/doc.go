// Package unwind finds the caller of a function from its registers and its stack: the call
// frame information of an ELF file, executed.
//
// A [Table] has what one file says: .eh_frame, .debug_frame and .sframe. Its [Row] of an
// address says how the caller's registers are found there, and [Row.Step] finds them. Rows
// are shared by all addresses with the same rules, so that a program has few.
//
// Sources: DWARF 5, 6.4 "Call Frame Information" and 2.5 "DWARF Expressions"; Linux Standard
// Base, "Exception Frames"; the psABIs of x86-64 and of Arm's 64-bit architecture; "The
// SFrame format" of GNU binutils. Files are not trusted: every loop is bounded by their
// size, and nothing is read beyond it.
package unwind
