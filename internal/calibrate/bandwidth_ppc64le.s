//go:build linux

#include "textflag.h"

// Loops that move data, n times 256 bytes: a[i] = b[i] + s*c[i] and parts of it.
// POWER has no stores past the caches.

#define BEGIN \
	MOVD n+0(FP), R3; MOVD R3, CTR; MOVD a+8(FP), R4; MOVD b+16(FP), R5; MOVD c+24(FP), R6; \
	MOVD $0, R7; MOVD $16, R8; MOVD $32, R9; MOVD $48, R10

#define END BDNZ again; RET

#define TIMES4(X) X; X; X; X

#define LOAD(FROM, V0, V1, V2, V3) \
	LXVD2X (FROM)(R7), V0; LXVD2X (FROM)(R8), V1; LXVD2X (FROM)(R9), V2; LXVD2X (FROM)(R10), V3; ADD $64, FROM

#define STORE(V0, V1, V2, V3) \
	STXVD2X V0, (R4)(R7); STXVD2X V1, (R4)(R8); STXVD2X V2, (R4)(R9); STXVD2X V3, (R4)(R10); ADD $64, R4

#define READ LOAD(R4, VS0, VS1, VS2, VS3)

TEXT ·readVSX(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES4(READ)
	END

#define WRITE STORE(VS0, VS0, VS0, VS0)

TEXT ·writeVSX(SB), NOSPLIT, $0-32
	BEGIN
	LXVD2X (R4)(R7), VS0
again:
	TIMES4(WRITE)
	END

#define COPY LOAD(R5, VS0, VS1, VS2, VS3); STORE(VS0, VS1, VS2, VS3)

TEXT ·copyVSX(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES4(COPY)
	END

// a = b + s*c; s is 0, so that results do not depend on what the arrays hold. The
// assembler does not know XVMADDADP: VS0 += VS4*VS8, VS1 += VS5*VS8, and so on.
#define SUM WORD $0xf0044308; WORD $0xf0254308; WORD $0xf0464308; WORD $0xf0674308

#define TRIAD \
	LOAD(R5, VS0, VS1, VS2, VS3); LOAD(R6, VS4, VS5, VS6, VS7); \
	SUM; STORE(VS0, VS1, VS2, VS3)

TEXT ·triadVSX(SB), NOSPLIT, $0-32
	BEGIN
	XXLXOR VS8, VS8, VS8
again:
	TIMES4(TRIAD)
	END
