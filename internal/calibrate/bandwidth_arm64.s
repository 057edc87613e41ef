//go:build linux

#include "textflag.h"

// Loops that move data, n times 256 bytes: a[i] = b[i] + s*c[i] and parts of it.

#define BEGIN MOVD n+0(FP), R0; MOVD a+8(FP), R1; MOVD b+16(FP), R2; MOVD c+24(FP), R3

#define END SUBS $1, R0, R0; BNE again; RET

#define TIMES4(X) X; X; X; X

#define READ FLDPQ (R1), (F0, F1); FLDPQ 32(R1), (F2, F3); ADD $64, R1

TEXT ·readSIMD(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES4(READ)
	END

#define WRITE FSTPQ (F0, F1), (R1); FSTPQ (F0, F1), 32(R1); ADD $64, R1

TEXT ·writeSIMD(SB), NOSPLIT, $0-32
	BEGIN
	FLDPQ (R1), (F0, F1)
again:
	TIMES4(WRITE)
	END

// The stores with a hint that the data will not be used again, which the assembler
// does not know: STNP Q0, Q1, [R1, #offset], with offset/16 in bits 15 to 21; the last
// is of Q2 and Q3.
#define STNP0  WORD $0xac000420
#define STNP32 WORD $0xac010420
#define STNP32B WORD $0xac010c22

#define STREAM STNP0; STNP32; ADD $64, R1

TEXT ·streamSIMD(SB), NOSPLIT, $0-32
	BEGIN
	FLDPQ (R1), (F0, F1)
again:
	TIMES4(STREAM)
	END

#define COPY FLDPQ (R2), (F0, F1); FLDPQ 32(R2), (F2, F3); FSTPQ (F0, F1), (R1); FSTPQ (F2, F3), 32(R1); ADD $64, R1; ADD $64, R2

TEXT ·copySIMD(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES4(COPY)
	END

#define COPYSTREAM FLDPQ (R2), (F0, F1); FLDPQ 32(R2), (F2, F3); STNP0; STNP32B; ADD $64, R1; ADD $64, R2

TEXT ·copyStreamSIMD(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES4(COPYSTREAM)
	END

// a = b + s*c; s is 0, so that results do not depend on what the arrays hold.
#define SUM \
	FLDPQ (R2), (F0, F1); FLDPQ 32(R2), (F2, F3); FLDPQ (R3), (F4, F5); FLDPQ 32(R3), (F6, F7); \
	VFMLA V4.D2, V31.D2, V0.D2; VFMLA V5.D2, V31.D2, V1.D2; VFMLA V6.D2, V31.D2, V2.D2; VFMLA V7.D2, V31.D2, V3.D2

#define NEXT ADD $64, R1; ADD $64, R2; ADD $64, R3

#define TRIAD SUM; FSTPQ (F0, F1), (R1); FSTPQ (F2, F3), 32(R1); NEXT

TEXT ·triadSIMD(SB), NOSPLIT, $0-32
	BEGIN
	VEOR V31.B16, V31.B16, V31.B16
again:
	TIMES4(TRIAD)
	END

#define TRIADSTREAM SUM; STNP0; STNP32B; NEXT

TEXT ·triadStreamSIMD(SB), NOSPLIT, $0-32
	BEGIN
	VEOR V31.B16, V31.B16, V31.B16
again:
	TIMES4(TRIADSTREAM)
	END
