//go:build linux

#include "textflag.h"

// Loops that move data, n times 256 bytes: a[i] = b[i] + s*c[i] and parts of it.
// They use the floating-point registers that every processor has, not the vector
// extension, which many do not; there are no stores past the caches.

#define BEGIN MOV n+0(FP), X10; MOV a+8(FP), X11; MOV b+16(FP), X12; MOV c+24(FP), X13

#define END SUB $1, X10; BNEZ X10, again; RET

#define TIMES8(X) X; X; X; X; X; X; X; X

#define READ MOVD (X11), F0; MOVD 8(X11), F1; MOVD 16(X11), F2; MOVD 24(X11), F3; ADD $32, X11

TEXT ·readFP(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES8(READ)
	END

#define WRITE MOVD F0, (X11); MOVD F0, 8(X11); MOVD F0, 16(X11); MOVD F0, 24(X11); ADD $32, X11

TEXT ·writeFP(SB), NOSPLIT, $0-32
	BEGIN
	MOVD (X11), F0
again:
	TIMES8(WRITE)
	END

#define LOAD MOVD (X12), F0; MOVD 8(X12), F1; MOVD 16(X12), F2; MOVD 24(X12), F3; ADD $32, X12

#define STORE MOVD F0, (X11); MOVD F1, 8(X11); MOVD F2, 16(X11); MOVD F3, 24(X11); ADD $32, X11

#define COPY LOAD; STORE

TEXT ·copyFP(SB), NOSPLIT, $0-32
	BEGIN
again:
	TIMES8(COPY)
	END

// a = b + s*c; s is 0, so that results do not depend on what the arrays hold.
#define TRIAD \
	LOAD; MOVD (X13), F4; MOVD 8(X13), F5; MOVD 16(X13), F6; MOVD 24(X13), F7; ADD $32, X13; \
	FMADDD F4, F8, F0, F0; FMADDD F5, F8, F1, F1; FMADDD F6, F8, F2, F2; FMADDD F7, F8, F3, F3; \
	STORE

TEXT ·triadFP(SB), NOSPLIT, $0-32
	BEGIN
	FMVDX ZERO, F8
again:
	TIMES8(TRIAD)
	END
