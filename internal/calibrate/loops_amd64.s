//go:build linux

#include "textflag.h"

// Every loop is func(n uint64, a, b, c unsafe.Pointer) and runs n iterations of
// what its comment says. The bodies are repeated so often that counting the
// iterations costs next to nothing beside them. No body touches the counter, CX.

#define TWICE(X)   X; X
#define TIMES4(X)  TWICE(X); TWICE(X)
#define TIMES8(X)  TIMES4(X); TIMES4(X)
#define TIMES16(X) TIMES8(X); TIMES8(X)
#define TIMES32(X) TIMES16(X); TIMES16(X)
#define TIMES64(X) TIMES32(X); TIMES32(X)

// END closes a loop: the count down that every loop has, and the empty loop has
// alone.
#define END(label) DECQ CX; JNE label; RET

// loopEmpty: nothing. The baseline of all others.
TEXT ·loopEmpty(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
again:
	END(again)

#define ADD ADDQ CX, AX

// loopAdds: 64 additions, each of which needs the sum of the one before and so
// begins a cycle after it. Both operands are registers: additions of constants
// take no time at all on some processors, which do them while renaming.
TEXT ·loopAdds(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ CX, AX
again:
	TIMES64(ADD)
	END(again)

#define VECTORADD PADDQ X1, X0

// loopVectorAdds: loopAdds in vector registers, which is the work of other units.
TEXT ·loopVectorAdds(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ CX, X0
	MOVQ CX, X1
again:
	TIMES64(VECTORADD)
	END(again)

#define PRODUCT IMULL AX, AX

// loopProducts: 64 multiplications of 32 bits, each of the product of the one before.
TEXT ·loopProducts(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVL $3, AX
again:
	TIMES64(PRODUCT)
	END(again)

#define LOAD MOVQ (SI), SI

// loopChase: 128 loads, each from the address that the one before has loaded.
// *a is where to begin, and afterwards where it ended.
TEXT ·loopChase(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), DI
	MOVQ (DI), SI
again:
	TIMES64(TWICE(LOAD))
	DECQ CX
	JNE  again
	MOVQ SI, (DI)
	RET

#define FORWARD MOVQ AX, (SI); MOVQ (DI), AX

// loopForward: 16 times a store of 8 bytes to a, and their load from b, which is
// the same address in another register: some processors rename a store and load
// through the same register and never forward anything. Each store needs the load
// before it.
TEXT ·loopForward(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
again:
	TIMES16(FORWARD)
	END(again)

#define PART MOVQ AX, (SI); MOVL 2(DI), AX

// loopForwardPart: like loopForward, with a load of 4 bytes from the middle of the
// 8 stored.
TEXT ·loopForwardPart(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
again:
	TIMES16(PART)
	END(again)

#define JOIN MOVL AX, (SI); MOVL AX, 4(SI); MOVQ (DI), AX

// loopForwardJoin: like loopForward, but the 8 bytes loaded were stored as two
// halves, and no single store can give them.
TEXT ·loopForwardJoin(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
again:
	TIMES16(JOIN)
	END(again)

#define OVERLAP MOVQ AX, (SI); MOVQ 4(DI), AX

// loopForwardOverlap: like loopForward, but only the first half of the 8 bytes
// loaded was stored just before.
TEXT ·loopForwardOverlap(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
again:
	TIMES16(OVERLAP)
	END(again)

#define LATE IMULQ DX, AX; IMULQ DX, AX; IMULQ DX, AX; MOVQ DX, (SI)(AX*1); MOVQ (DI)(BX*1), BX; ADDQ BX, AX

// loopStoreLate: 8 times a store whose address is known only after three
// multiplications, and a load from elsewhere, which the next multiplication needs.
// If the load waits for the store's address its latency adds to theirs. *b is 0.
TEXT ·loopStoreLate(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
	MOVQ $1, DX
	XORL AX, AX
	XORL BX, BX
again:
	TIMES8(LATE)
	END(again)

#define EARLY IMULQ DX, AX; IMULQ DX, AX; IMULQ DX, AX; MOVQ DX, (SI)(R8*1); MOVQ (DI)(BX*1), BX; ADDQ BX, AX

// loopStoreEarly: loopStoreLate with an address that is known from the start. R8 is
// an index of 0 that does not come out of the multiplications.
TEXT ·loopStoreEarly(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
	MOVQ $1, DX
	XORL AX, AX
	XORL BX, BX
	XORL R8, R8
again:
	TIMES8(EARLY)
	END(again)

#define STORELOAD MOVQ AX, (DI); MOVQ (SI), SI

// loopStoreThenLoad: 16 times a store to b and a load from a, which holds its own
// address: each load waits for the one before, and for the store only if the
// processor takes b for a.
TEXT ·loopStoreThenLoad(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
	XORL AX, AX
again:
	TIMES16(STORELOAD)
	END(again)

#define STORE MOVQ AX, (SI)

// loopStores: 16 stores of 8 bytes to a.
TEXT ·loopStores(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	XORL AX, AX
again:
	TIMES16(STORE)
	END(again)

#define BRANCH SHRQ $1, AX; JCC 2(PC); ADDQ DX, BX

// loopBranches: 64 branches, on the bits of one word after another of the 8192 at
// a. The bits are at hand in a register, so that a branch is decided as soon as it
// is executed. A branch that is not taken adds 1 to a sum. b is where it left off.
TEXT ·loopBranches(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DI
	MOVQ (DI), R9
	MOVQ $1, DX
again:
	MOVQ (SI)(R9*8), AX
	INCQ R9
	ANDQ $8191, R9
	TIMES64(BRANCH)
	DECQ CX
	JNE  again
	MOVQ R9, (DI)
	RET

// A short jump over the 14 bytes that fill up 16, in bytes because the assembler
// would let a jump to a jump go to where that one goes.
#define JUMP WORD $0x0eeb; WORD $0xcccc; LONG $0xcccccccc; QUAD $0xcccccccccccccccc

// loopJumps: 64 jumps, one in every 16 bytes.
TEXT ·loopJumps(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
again:
	TIMES64(JUMP)
	END(again)

#define CALLIT CALL ·returns(SB)

// loopCalls: 16 calls of a function that returns at once.
TEXT ·loopCalls(SB), NOSPLIT, $8-32
	MOVQ n+0(FP), CX
again:
	TIMES16(CALLIT)
	END(again)

TEXT ·returns(SB), NOSPLIT|NOFRAME, $0-0
	RET

#define DIVIDE64 XORL DX, DX; DIVQ R9; ADDQ R8, AX

// loopDivide64: 16 divisions of 64-bit numbers, each of the quotient before, to
// which a constant is added: the dividend settles where the quotient has 60 bits.
TEXT ·loopDivide64(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVQ $0x0123456789abcdef, R8
	MOVQ $7, R9
	MOVQ R8, AX
again:
	TIMES16(DIVIDE64)
	END(again)

#define DIVIDE32 XORL DX, DX; DIVL R9; ADDL R8, AX

// loopDivide32: the same with 32-bit numbers.
TEXT ·loopDivide32(SB), NOSPLIT, $0-32
	MOVQ n+0(FP), CX
	MOVL $0x01234567, R8
	MOVL $7, R9
	MOVL R8, AX
again:
	TIMES16(DIVIDE32)
	END(again)

#define DIVIDEFLOAT DIVSD X1, X0

// loopDivideFloat: 16 divisions of one by the result before.
TEXT ·loopDivideFloat(SB), NOSPLIT, $0-32
	MOVQ  n+0(FP), CX
	MOVQ  a+8(FP), SI
	MOVQ  b+16(FP), DI
	MOVSD (SI), X0
	MOVSD (DI), X1
again:
	TIMES16(DIVIDEFLOAT)
	END(again)

#define MULTIPLY MULSD X1, X0

// loopMultiply: 16 multiplications of the double at a by that at b, each of the
// product before. With b of 1 it stays what it is: denormal, if a is.
TEXT ·loopMultiply(SB), NOSPLIT, $0-32
	MOVQ  n+0(FP), CX
	MOVQ  a+8(FP), SI
	MOVQ  b+16(FP), DI
	MOVSD (SI), X0
	MOVSD (DI), X1
again:
	TIMES16(MULTIPLY)
	END(again)

// loopCode: calls the code at a.
TEXT ·loopCode(SB), NOSPLIT, $8-32
	MOVQ n+0(FP), CX
	MOVQ a+8(FP), SI
again:
	CALL SI
	END(again)
