//go:build linux

package calibrate

// cpuid executes CPUID: see Intel's Software Developer's Manual, volume 2A. Package
// golang.org/x/sys/cpu would execute it at the start of every program that imports this
// one. That is slow in a virtual machine.
func cpuid(leaf, subleaf uint32) (eax, ebx, ecx uint32)

// xgetbv returns the low half of XCR0: the registers that the operating system saves.
func xgetbv() (eax uint32)

// Bits of CPUID: leaf 1, ECX; leaf 7, EBX; and of XCR0.
const (
	hasFMA     = 1 << 12
	hasOSXSAVE = 1 << 27 // XGETBV may be executed
	hasAVX2    = 1 << 5
	hasAVX512F = 1 << 16

	savesAVX    = 1<<1 | 1<<2                   // XMM and YMM
	savesAVX512 = savesAVX | 1<<5 | 1<<6 | 1<<7 // and the masks, and both halves of ZMM
)

// vectors reports whether there are AVX2 with FMA, and AVX-512.
func vectors() (avx2, avx512 bool) {
	last, _, _ := cpuid(0, 0)
	_, _, ecx := cpuid(1, 0)
	if last < 7 || ecx&hasOSXSAVE == 0 {
		return false, false
	}
	saved := xgetbv()
	_, ebx, _ := cpuid(7, 0)
	avx2 = ecx&hasFMA != 0 && ebx&hasAVX2 != 0 && saved&savesAVX == savesAVX
	return avx2, ebx&hasAVX512F != 0 && saved&savesAVX512 == savesAVX512
}
