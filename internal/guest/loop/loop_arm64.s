#include "textflag.h"

// func Run(n uint64)
TEXT ·Run(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0

again:
	SUBS $1, R0, R0
	BNE  again
	RET

// func Twin(n uint64)
TEXT ·Twin(SB), NOSPLIT, $0-8
	MOVD n+0(FP), R0

again:
	SUBS $1, R0, R0
	BNE  again
	RET
