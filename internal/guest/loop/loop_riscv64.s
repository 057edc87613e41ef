#include "textflag.h"

// func Run(n uint64)
TEXT ·Run(SB), NOSPLIT|NOFRAME, $0-8
	MOV n+0(FP), X5

again:
	ADD $-1, X5
	BNE X5, X0, again
	RET

// func Twin(n uint64)
TEXT ·Twin(SB), NOSPLIT|NOFRAME, $0-8
	MOV n+0(FP), X5

again:
	ADD $-1, X5
	BNE X5, X0, again
	RET
