package loop

import (
	"fmt"
	"time"
)

// Phases is a program that computes and calls the kernel in turn. It has no libraries and
// one thread, and its times are those of the processor's own clock. There is one for arm64.
type Phases struct {
	Count  uint32        // pairs of phases: one in user mode, then one in the kernel
	Length time.Duration // the least length of a phase
	Random uint32        // microseconds: the bits that random lengths have in addition; 0: all are the same
	Seed   uint32
	Align  time.Duration // the first begins at a multiple of it; 0: at once
	Offset time.Duration // after that
}

// ELF returns the program's file.
func (p Phases) ELF(goarch string) ([]byte, error) {
	if goarch != "arm64" {
		return nil, fmt.Errorf("loop: there is no program with phases for %q", goarch)
	}
	if p.Count == 0 || p.Length <= 0 {
		return nil, fmt.Errorf("loop: %d phases of %v", p.Count, p.Length)
	}
	m := machines[goarch]
	return m.file(p.code()), nil
}

// code draws the lengths by a linear congruential generator (x22), and fills 1024 bytes at
// random in the kernel: getrandom(2).
func (p Phases) code() []byte {
	half, align, offset := micros(p.Length), micros(p.Align), micros(p.Offset)
	return words(
		0xd2800016|p.Seed&0xffff<<5,   // mov x22, low half
		0xf2a00016|p.Seed>>16<<5,      // movk x22, high half, lsl 16
		0xd2800017|p.Count&0xffff<<5,  // mov x23, low half
		0xf2a00017|p.Count>>16<<5,     // movk x23, high half, lsl 16
		0xd2800018|half&0xffff<<5,     // mov x24, low half
		0xf2a00018|half>>16<<5,        // movk x24, high half, lsl 16
		0xd2800019|p.Random&0xffff<<5, // mov x25, low half
		0xf2a00019|p.Random>>16<<5,    // movk x25, high half, lsl 16
		0xd280001a|offset&0xffff<<5,   // mov x26, low half
		0xf2a0001a|offset>>16<<5,      // movk x26, high half, lsl 16
		0xd280001c|align&0xffff<<5,    // mov x28, low half
		0xf2a0001c|align>>16<<5,       // movk x28, high half, lsl 16
		0xd11003ff,                    // sub sp, sp, #0x400
		0xd53be014,                    // mrs x20, cntfrq_el0
		0xd2884815,                    // mov x21, #0x4240
		0xf2a001f5,                    // movk x21, #0xf, lsl #16
		0xd28cc1b3,                    // mov x19, #0x660d
		0xf2a00333,                    // movk x19, #0x19, lsl #16
		0xd53be05b,                    // mrs x27, cntvct_el0
		0xb400017c,                    // cbz x28, begin
		0x9b147f80,                    // mul x0, x28, x20
		0x9ad50800,                    // udiv x0, x0, x21
		0x9ac00b7b,                    // udiv x27, x27, x0
		0x9b00037b,                    // madd x27, x27, x0, x0
		0x9b147f40,                    // mul x0, x26, x20
		0x9ad50800,                    // udiv x0, x0, x21
		0x8b00037b,                    // add x27, x27, x0
		0xd53be041,                    // mrs x1, cntvct_el0
		0xeb1b003f,                    // cmp x1, x27
		0x54ffffcb,                    // b.lt back
		0x94000015,                    // bl next
		0xd2807d02,                    // mov x2, #0x3e8
		0xf1000442,                    // subs x2, x2, #0x1
		0x54ffffe1,                    // b.ne back
		0xd53be041,                    // mrs x1, cntvct_el0
		0xeb1b003f,                    // cmp x1, x27
		0x54ffff6b,                    // b.lt back
		0x9400000e,                    // bl next
		0x910003e0,                    // mov x0, sp
		0xd2808001,                    // mov x1, #0x400
		0xd2800002,                    // mov x2, #0x0
		0xd28022c8,                    // mov x8, #0x116
		0xd4000001,                    // svc #0x0
		0xd53be041,                    // mrs x1, cntvct_el0
		0xeb1b003f,                    // cmp x1, x27
		0x54ffff2b,                    // b.lt back
		0xf10006f7,                    // subs x23, x23, #0x1
		0x54fffde1,                    // b.ne back
		0xd2800000,                    // mov x0, #0x0
		0xd2800ba8,                    // mov x8, #0x5d
		0xd4000001,                    // svc #0x0
		0x1b137ed6,                    // mul w22, w22, w19
		0x110f1ad6,                    // add w22, w22, #0x3c6
		0x53107ec0,                    // lsr w0, w22, #16
		0x0a190000,                    // and w0, w0, w25
		0x8b180000,                    // add x0, x0, x24
		0x9b147c00,                    // mul x0, x0, x20
		0x9ad50800,                    // udiv x0, x0, x21
		0x8b00037b,                    // add x27, x27, x0
		0xd65f03c0,                    // ret
	)
}

func micros(d time.Duration) uint32 { return uint32(d.Microseconds()) }
