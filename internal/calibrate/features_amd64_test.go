//go:build linux

package calibrate

import (
	"testing"

	"golang.org/x/sys/cpu"
)

func TestVectors(t *testing.T) {
	avx2, avx512 := vectors()
	if want := cpu.X86.HasAVX2 && cpu.X86.HasFMA; avx2 != want {
		t.Errorf("AVX2 and FMA: %v, want %v", avx2, want)
	}
	if want := cpu.X86.HasAVX512F; avx512 != want {
		t.Errorf("AVX-512: %v, want %v", avx512, want)
	}
}
