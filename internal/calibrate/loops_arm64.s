//go:build linux

#include "textflag.h"

// Every loop is func(n uint64, a, b, c unsafe.Pointer) and runs n iterations of
// what its comment says. The bodies are repeated so often that counting the
// iterations costs next to nothing beside them. No body touches the counter, R0.

#define TWICE(X)   X; X
#define TIMES4(X)  TWICE(X); TWICE(X)
#define TIMES8(X)  TIMES4(X); TIMES4(X)
#define TIMES16(X) TIMES8(X); TIMES8(X)
#define TIMES32(X) TIMES16(X); TIMES16(X)
#define TIMES64(X) TIMES32(X); TIMES32(X)

// END closes a loop: the count down that every loop has, and the empty loop has
// alone.
#define END SUBS $1, R0, R0; BNE again; RET

#define BEGIN MOVD n+0(FP), R0; MOVD a+8(FP), R1; MOVD b+16(FP), R2

// loopEmpty: nothing. The baseline of all others.
TEXT ·loopEmpty(SB), NOSPLIT, $0-32
	BEGIN
again:
	END

#define ADDONE ADD R0, R3, R3

// loopAdds: 64 additions, each of which needs the sum of the one before and so
// begins a cycle after it.
TEXT ·loopAdds(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES64(ADDONE)
	END

#define LOAD MOVD (R3), R3

// loopChase: 128 loads, each from the address that the one before has loaded.
// *a is where to begin, and afterwards where it ended.
TEXT ·loopChase(SB), NOSPLIT, $0-32
	BEGIN
	MOVD (R1), R3
again:
	TIMES64(TWICE(LOAD))
	SUBS $1, R0, R0
	BNE  again
	MOVD R3, (R1)
	RET

#define FORWARD MOVD R3, (R1); MOVD (R2), R3

// loopForward: 16 times a store of 8 bytes to a, and their load from b, the same
// address in another register. Each store needs the load before it.
TEXT ·loopForward(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(FORWARD)
	END

#define PART MOVD R3, (R1); MOVWU 2(R2), R3

// loopForwardPart: like loopForward, with a load of 4 bytes from the middle of the
// 8 stored.
TEXT ·loopForwardPart(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(PART)
	END

#define JOIN MOVW R3, (R1); MOVW R3, 4(R1); MOVD (R2), R3

// loopForwardJoin: like loopForward, but the 8 bytes loaded were stored as two
// halves, and no single store can give them.
TEXT ·loopForwardJoin(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(JOIN)
	END

#define OVERLAP MOVD R3, (R1); MOVD 4(R2), R3

// loopForwardOverlap: like loopForward, but only the first half of the 8 bytes
// loaded was stored just before.
TEXT ·loopForwardOverlap(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(OVERLAP)
	END

#define LATE(I) MUL R4, R3, R3; MUL R4, R3, R3; MUL R4, R3, R3; MOVD R4, (R1)(I); MOVD (R2)(R5), R5; ADD R5, R3, R3

// loopStoreLate: 8 times a store whose address is known only after three
// multiplications, and a load from elsewhere, which the next multiplication needs.
// If the load waits for the store's address its latency adds to theirs. *b is 0.
TEXT ·loopStoreLate(SB), NOSPLIT, $0-32
	BEGIN
	MOVD $1, R4
	MOVD ZR, R3
	MOVD ZR, R5
again:
	TIMES8(LATE(R3))
	END

// loopStoreEarly: loopStoreLate with an address that is known from the start. R6 is
// an index of 0 that does not come out of the multiplications.
TEXT ·loopStoreEarly(SB), NOSPLIT, $0-32
	BEGIN
	MOVD $1, R4
	MOVD ZR, R3
	MOVD ZR, R5
	MOVD ZR, R6
again:
	TIMES8(LATE(R6))
	END

#define STORELOAD MOVD ZR, (R2); MOVD (R1), R1

// loopStoreThenLoad: 16 times a store to b and a load from a, which holds its own
// address: each load waits for the one before, and for the store only if the
// processor takes b for a.
TEXT ·loopStoreThenLoad(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(STORELOAD)
	END

#define STORE MOVD ZR, (R1)

// loopStores: 16 stores of 8 bytes to a.
TEXT ·loopStores(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(STORE)
	END

#define BRANCH TBZ $0, R3, 2(PC); ADD $1, R5, R5; LSR $1, R3, R3

// loopBranches: 64 branches, on the bits of one word after another of the 8192 at
// a. The bits are at hand in a register, so that a branch is decided as soon as it
// is executed. A branch that is not taken adds 1 to a sum. b is where it left off.
TEXT ·loopBranches(SB), NOSPLIT, $0-32
	BEGIN
	MOVD (R2), R4
again:
	MOVD (R1)(R4<<3), R3
	ADD  $1, R4, R4
	AND  $8191, R4, R4
	TIMES64(BRANCH)
	SUBS $1, R0, R0
	BNE  again
	MOVD R4, (R2)
	RET

// A branch over the 12 bytes that fill up 16, in numbers because the assembler
// would let a branch to a branch go to where that one goes: B .+16, three UDF.
#define JUMP WORD $0x14000004; WORD $0; WORD $0; WORD $0

// loopJumps: 64 jumps, one in every 16 bytes.
TEXT ·loopJumps(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES64(JUMP)
	END

#define CALLIT CALL ·returns(SB)

// loopCalls: 16 calls of a function that returns at once.
TEXT ·loopCalls(SB), NOSPLIT, $16-32
	BEGIN
again:
	TIMES16(CALLIT)
	END

TEXT ·returns(SB), NOSPLIT|NOFRAME, $0-0
	RET

#define DIVIDE64 UDIV R5, R3, R3; ADD R4, R3, R3

// loopDivide64: 16 divisions of 64-bit numbers, each of the quotient before, to
// which a constant is added: the dividend settles where the quotient has 60 bits.
TEXT ·loopDivide64(SB), NOSPLIT, $0-32
	BEGIN
	MOVD $0x0123456789abcdef, R4
	MOVD $7, R5
	MOVD R4, R3
again:
	TIMES16(DIVIDE64)
	END

#define DIVIDE32 UDIVW R5, R3, R3; ADDW R4, R3, R3

// loopDivide32: the same with 32-bit numbers.
TEXT ·loopDivide32(SB), NOSPLIT, $0-32
	BEGIN
	MOVW $0x01234567, R4
	MOVW $7, R5
	MOVW R4, R3
again:
	TIMES16(DIVIDE32)
	END

#define DIVIDEFLOAT FDIVD F1, F0, F0

// loopDivideFloat: 16 divisions, by the double at b, of that at a and then of the
// result before.
TEXT ·loopDivideFloat(SB), NOSPLIT, $0-32
	BEGIN
	FMOVD (R1), F0
	FMOVD (R2), F1
again:
	TIMES16(DIVIDEFLOAT)
	END

#define MULTIPLY FMULD F1, F0, F0

// loopMultiply: 16 multiplications of the double at a by that at b, each of the
// product before. With b of 1 it stays what it is: denormal, if a is.
TEXT ·loopMultiply(SB), NOSPLIT, $0-32
	BEGIN
	FMOVD (R1), F0
	FMOVD (R2), F1
again:
	TIMES16(MULTIPLY)
	END
