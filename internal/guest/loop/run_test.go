//go:build amd64 || arm64 || ppc64le || riscv64

package loop

import "testing"

// Run ends.
func TestRun(t *testing.T) {
	Run(1)
	Run(1000)
}
