//go:build amd64 || arm64 || ppc64le || riscv64

package loop

import "testing"

// Run and Twin end.
func TestRun(t *testing.T) {
	for _, run := range []func(uint64){Run, Twin} {
		run(1)
		run(1000)
	}
}
