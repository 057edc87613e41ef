//go:build linux

#include "textflag.h"

// Every loop is func(n uint64, a, b, c unsafe.Pointer) and runs n iterations of
// what its comment says. The bodies are repeated so often that counting the
// iterations costs next to nothing beside them. No body touches
// the counter, X10.

#define TWICE(X)   X; X
#define TIMES4(X)  TWICE(X); TWICE(X)
#define TIMES8(X)  TIMES4(X); TIMES4(X)
#define TIMES16(X) TIMES8(X); TIMES8(X)
#define TIMES32(X) TIMES16(X); TIMES16(X)
#define TIMES64(X) TIMES32(X); TIMES32(X)

// END closes a loop: the count down that every loop has, and the empty loop has
// alone.
#define END SUB $1, X10; BNEZ X10, again; RET

#define BEGIN MOV n+0(FP), X10; MOV a+8(FP), X11; MOV b+16(FP), X12

// loopEmpty: nothing. The baseline of all others.
TEXT ·loopEmpty(SB), NOSPLIT, $0-32
	BEGIN
again:
	END

#define ADDONE ADD X10, X13, X13

// loopAdds: 64 additions, each of which needs the sum of the one before and so
// begins a cycle after it.
TEXT ·loopAdds(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES64(ADDONE)
	END

#define LOAD MOV (X13), X13

// loopChase: 128 loads, each from the address that the one before has loaded.
// *a is where to begin, and afterwards where it ended.
TEXT ·loopChase(SB), NOSPLIT, $0-32
	BEGIN
	MOV (X11), X13
again:
	TIMES64(TWICE(LOAD))
	SUB  $1, X10
	BNEZ X10, again
	MOV  X13, (X11)
	RET

#define FORWARD MOV X13, (X11); MOV (X12), X13

// loopForward: 16 times a store of 8 bytes to a, and their load from b, the same
// address in another register. Each store needs the load before it.
TEXT ·loopForward(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(FORWARD)
	END

#define PART MOV X13, (X11); MOVWU 2(X12), X13

// loopForwardPart: like loopForward, with a load of 4 bytes from the middle of the
// 8 stored.
TEXT ·loopForwardPart(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(PART)
	END

#define JOIN MOVW X13, (X11); MOVW X13, 4(X11); MOV (X12), X13

// loopForwardJoin: like loopForward, but the 8 bytes loaded were stored as two
// halves, and no single store can give them.
TEXT ·loopForwardJoin(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(JOIN)
	END

#define OVERLAP MOV X13, (X11); MOV 4(X12), X13

// loopForwardOverlap: like loopForward, but only the first half of the 8 bytes
// loaded was stored just before.
TEXT ·loopForwardOverlap(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(OVERLAP)
	END

#define LATE(I) MUL X14, X13, X13; MUL X14, X13, X13; MUL X14, X13, X13; ADD I, X11, X17; MOV X14, (X17); ADD X12, X15, X17; MOV (X17), X15; ADD X15, X13, X13

// loopStoreLate: 8 times a store whose address is known only after three
// multiplications, and a load from elsewhere, which the next multiplication needs.
// If the load waits for the store's address its latency adds to theirs. *b is 0.
TEXT ·loopStoreLate(SB), NOSPLIT, $0-32
	BEGIN
	MOV $1, X14
	MOV ZERO, X13
	MOV ZERO, X15
again:
	TIMES8(LATE(X13))
	END

// loopStoreEarly: loopStoreLate with an address that is known from the start. X16 is
// an index of 0 that does not come out of the multiplications.
TEXT ·loopStoreEarly(SB), NOSPLIT, $0-32
	BEGIN
	MOV $1, X14
	MOV ZERO, X13
	MOV ZERO, X15
	MOV ZERO, X16
again:
	TIMES8(LATE(X16))
	END

#define STORELOAD MOV ZERO, (X12); MOV (X11), X11

// loopStoreThenLoad: 16 times a store to b and a load from a, which holds its own
// address: each load waits for the one before, and for the store only if the
// processor takes b for a.
TEXT ·loopStoreThenLoad(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(STORELOAD)
	END

#define STORE MOV ZERO, (X11)

// loopStores: 16 stores of 8 bytes to a.
TEXT ·loopStores(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES16(STORE)
	END

#define BRANCH ANDI $1, X13, X15; BEQZ X15, 2(PC); ADD $1, X16, X16; SRL $1, X13, X13

// loopBranches: 64 branches, on the bits of one word after another of the 8192 at
// a. The bits are at hand in a register, so that a branch is decided as soon as it
// is executed. A branch that is not taken adds 1 to a sum. b is where it left off.
TEXT ·loopBranches(SB), NOSPLIT, $0-32
	BEGIN
	MOV (X12), X14
	MOV $8191, X17
again:
	SLL  $3, X14, X13
	ADD  X11, X13, X13
	MOV  (X13), X13
	ADD  $1, X14, X14
	AND  X17, X14, X14
	TIMES64(BRANCH)
	SUB  $1, X10
	BNEZ X10, again
	MOV  X14, (X12)
	RET

// A branch over the 12 bytes that fill up 16, in numbers because the assembler
// would let a branch to a branch go to where that one goes: j .+16, and zeros, which are no instructions.
#define JUMP WORD $0x0100006f; WORD $0; WORD $0; WORD $0

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

#define DIVIDE64 DIVU X15, X13, X13; ADD X14, X13, X13

// loopDivide64: 16 divisions of 64-bit numbers, each of the quotient before, to
// which a constant is added: the dividend settles where the quotient has 60 bits.
TEXT ·loopDivide64(SB), NOSPLIT, $0-32
	BEGIN
	MOV $0x0123456789abcdef, X14
	MOV $7, X15
	MOV X14, X13
again:
	TIMES16(DIVIDE64)
	END

#define DIVIDE32 DIVUW X15, X13, X13; ADDW X14, X13, X13

// loopDivide32: the same with 32-bit numbers.
TEXT ·loopDivide32(SB), NOSPLIT, $0-32
	BEGIN
	MOV $0x01234567, X14
	MOV $7, X15
	MOV X14, X13
again:
	TIMES16(DIVIDE32)
	END

#define DIVIDEFLOAT FDIVD F1, F0, F0

// loopDivideFloat: 16 divisions, by the double at b, of that at a and then of the
// result before.
TEXT ·loopDivideFloat(SB), NOSPLIT, $0-32
	BEGIN
	MOVD (X11), F0
	MOVD (X12), F1
again:
	TIMES16(DIVIDEFLOAT)
	END

#define MULTIPLY FMULD F1, F0, F0

// loopMultiply: 16 multiplications of the double at a by that at b, each of the
// product before. With b of 1 it stays what it is: denormal, if a is.
TEXT ·loopMultiply(SB), NOSPLIT, $0-32
	BEGIN
	MOVD (X11), F0
	MOVD (X12), F1
again:
	TIMES16(MULTIPLY)
	END
