//go:build linux && (arm64 || ppc64le || riscv64)

package calibrate

// costsHere are figures that only this architecture has.
func costsHere() []cost { return nil }
