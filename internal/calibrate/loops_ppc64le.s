//go:build linux

#include "textflag.h"

// Every loop is func(n uint64, a, b, c unsafe.Pointer) and runs n iterations of
// what its comment says. The bodies are repeated so often that counting the
// iterations costs next to nothing beside them. The count is
// in the count register. R6 is 0 or of no importance.

#define TWICE(X)   X; X
#define TIMES4(X)  TWICE(X); TWICE(X)
#define TIMES8(X)  TIMES4(X); TIMES4(X)
#define TIMES16(X) TIMES8(X); TIMES8(X)
#define TIMES32(X) TIMES16(X); TIMES16(X)
#define TIMES64(X) TIMES32(X); TIMES32(X)

// END closes a loop: the count down that every loop has, and the empty loop has
// alone.
#define END BDNZ again; RET

#define BEGIN MOVD n+0(FP), R3; MOVD R3, CTR; MOVD a+8(FP), R4; MOVD b+16(FP), R5; MOVD $0, R6

// loopEmpty: nothing. The baseline of all others.
TEXT ·loopEmpty(SB), NOSPLIT, $0-32
	BEGIN
again:
	END

#define ADDONE ADD R6, R7, R7

// loopAdds: 64 additions, each of which needs the sum of the one before and so
// begins one or two cycles after it: see addLatency.
TEXT ·loopAdds(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES64(ADDONE)
	END

#define LOAD MOVD (R7), R7

// loopChase: 128 loads, each from the address that the one before has loaded.
// *a is where to begin, and afterwards where it ended.
TEXT ·loopChase(SB), NOSPLIT, $0-32
	BEGIN
	MOVD (R4), R7
again:
	TIMES64(TWICE(LOAD))
	BDNZ again
	MOVD R7, (R4)
	RET

#define FORWARD MOVD R7, (R4); MOVD (R5), R7

// loopForward: 16 times a store of 8 bytes to a, and their load from b, the same
// address in another register. Each store needs the load before it.
TEXT ·loopForward(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(FORWARD)
	END

#define PART MOVD R7, (R4); MOVWZ 2(R5), R7

// loopForwardPart: like loopForward, with a load of 4 bytes from the middle of the
// 8 stored.
TEXT ·loopForwardPart(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(PART)
	END

#define JOIN MOVW R7, (R4); MOVW R7, 4(R4); MOVD (R5), R7

// loopForwardJoin: like loopForward, but the 8 bytes loaded were stored as two
// halves, and no single store can give them.
TEXT ·loopForwardJoin(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(JOIN)
	END

#define OVERLAP MOVD R7, (R4); MOVD 4(R5), R7

// loopForwardOverlap: like loopForward, but only the first half of the 8 bytes
// loaded was stored just before.
TEXT ·loopForwardOverlap(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(OVERLAP)
	END

#define LATE(I) MULLD R8, R7, R7; MULLD R8, R7, R7; MULLD R8, R7, R7; MOVD R8, (R4)(I); MOVD (R5)(R9), R9; ADD R9, R7, R7

// loopStoreLate: 8 times a store whose address is known only after three
// multiplications, and a load from elsewhere, which the next multiplication needs.
// If the load waits for the store's address its latency adds to theirs. *b is 0.
TEXT ·loopStoreLate(SB), NOSPLIT, $0-32
	BEGIN
	MOVD $1, R8
	MOVD $0, R7
	MOVD $0, R9
again:
	TIMES8(LATE(R7))
	END

// loopStoreEarly: loopStoreLate with an address that is known from the start. R10 is
// an index of 0 that does not come out of the multiplications.
TEXT ·loopStoreEarly(SB), NOSPLIT, $0-32
	BEGIN
	MOVD $1, R8
	MOVD $0, R7
	MOVD $0, R9
	MOVD $0, R10
again:
	TIMES8(LATE(R10))
	END

#define STORELOAD MOVD R6, (R5); MOVD (R4), R4

// loopStoreThenLoad: 16 times a store to b and a load from a, which holds its own
// address: each load waits for the one before, and for the store only if the
// processor takes b for a.
TEXT ·loopStoreThenLoad(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(STORELOAD)
	END

#define STORE MOVD R6, (R4)

// loopStores: 16 stores of 8 bytes to a.
TEXT ·loopStores(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(STORE)
	END

#define BRANCH ANDCC $1, R7, R9; BEQ 2(PC); ADD $1, R10, R10; SRD $1, R7, R7

// loopBranches: 64 branches, on the bits of one word after another of the 8192 at
// a. The bits are at hand in a register, so that a branch is decided as soon as it
// is executed. A branch that is not taken adds 1 to a sum. b is where it left off.
TEXT ·loopBranches(SB), NOSPLIT, $0-32
	BEGIN
	MOVD (R5), R8
again:
	SLD  $3, R8, R7
	MOVD (R4)(R7), R7
	ADD  $1, R8, R8
	ANDCC $8191, R8, R8
	TIMES64(BRANCH)
	BDNZ again
	MOVD R8, (R5)
	RET

// A branch over the 12 bytes that fill up 16, in numbers because the assembler
// would let a branch to a branch go to where that one goes: b .+16, and zeros, which are no instructions.
#define JUMP WORD $0x48000010; WORD $0; WORD $0; WORD $0

// loopJumps: 64 jumps, one in every 16 bytes.
TEXT ·loopJumps(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES64(JUMP)
	END

#define CALLIT CALL ·returns(SB)

// loopCalls: 16 calls of a function that returns at once.
TEXT ·loopCalls(SB), NOSPLIT, $32-32
	BEGIN
again:
	TIMES16(CALLIT)
	END

TEXT ·returns(SB), NOSPLIT|NOFRAME, $0-0
	RET

#define DIVIDE64 DIVDU R9, R7, R7; ADD R8, R7, R7

// loopDivide64: 16 divisions of 64-bit numbers, each of the quotient before, to
// which a constant is added: the dividend settles where the quotient has 60 bits.
TEXT ·loopDivide64(SB), NOSPLIT, $0-32
	BEGIN
	MOVD $0x0123456789abcdef, R8
	MOVD $7, R9
	MOVD R8, R7
again:
	TIMES16(DIVIDE64)
	END

#define DIVIDE32 DIVWU R9, R7, R7; ADD R8, R7, R7

// loopDivide32: the same with 32-bit numbers.
TEXT ·loopDivide32(SB), NOSPLIT, $0-32
	BEGIN
	MOVD $0x01234567, R8
	MOVD $7, R9
	MOVD R8, R7
again:
	TIMES16(DIVIDE32)
	END

#define DIVIDEFLOAT FDIV F1, F0, F0

// loopDivideFloat: 16 divisions, by the double at b, of that at a and then of the
// result before.
TEXT ·loopDivideFloat(SB), NOSPLIT, $0-32
	BEGIN
	FMOVD (R4), F0
	FMOVD (R5), F1
again:
	TIMES16(DIVIDEFLOAT)
	END

#define MULTIPLY FMUL F1, F0, F0

// loopMultiply: 16 multiplications of the double at a by that at b, each of the
// product before. With b of 1 it stays what it is: denormal, if a is.
TEXT ·loopMultiply(SB), NOSPLIT, $0-32
	BEGIN
	FMOVD (R4), F0
	FMOVD (R5), F1
again:
	TIMES16(MULTIPLY)
	END
