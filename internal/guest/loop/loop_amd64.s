#include "textflag.h"

// func Run(n uint64)
TEXT ·Run(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX

again:
	DECQ CX
	JNZ  again
	RET

// func Twin(n uint64)
TEXT ·Twin(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX

again:
	DECQ CX
	JNZ  again
	RET
