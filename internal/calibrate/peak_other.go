//go:build linux && (ppc64le || riscv64)

package calibrate

// peaks returns none: the widest instructions of these processors have no loop yet.
func peaks() []peak { return nil }
