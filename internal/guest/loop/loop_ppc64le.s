#include "textflag.h"

// func Run(n uint64)
TEXT ·Run(SB), NOSPLIT|NOFRAME, $0-8
	MOVD n+0(FP), R3
	MOVD R3, CTR

again:
	ADD  $1, R3
	BDNZ again
	RET

// func Twin(n uint64)
TEXT ·Twin(SB), NOSPLIT|NOFRAME, $0-8
	MOVD n+0(FP), R3
	MOVD R3, CTR

again:
	ADD  $1, R3
	BDNZ again
	RET
