// Interpreter: a machine with a stack counts primes by division.
#include "programs.h"

enum op { PUSH, GET, SET, ADD, MUL, REM, LESS, UNLESS, JUMP, HALT };
enum { N, D, FOUND, LIMIT };
static int program[128], size;

static int emit(int op, int argument)
{
	program[size++] = op;
	program[size++] = argument;
	return size - 1;
}

static void increment(int variable)
{
	emit(GET, variable);
	emit(PUSH, 1);
	emit(ADD, 0);
	emit(SET, variable);
}

FUNCTION void assemble(void)
{
	size = 0;
	emit(PUSH, 2);
	emit(SET, N);
	int outer = size; // while n < limit
	emit(GET, N);
	emit(GET, LIMIT);
	emit(LESS, 0);
	int end = emit(UNLESS, 0);
	emit(PUSH, 2);
	emit(SET, D);
	int inner = size; // while d * d < n + 1 and n % d != 0
	emit(GET, D);
	emit(GET, D);
	emit(MUL, 0);
	emit(GET, N);
	emit(PUSH, 1);
	emit(ADD, 0);
	emit(LESS, 0);
	int prime = emit(UNLESS, 0);
	emit(GET, N);
	emit(GET, D);
	emit(REM, 0);
	int divided = emit(UNLESS, 0);
	increment(D);
	emit(JUMP, inner);
	program[prime] = size;
	increment(FOUND);
	program[divided] = size;
	increment(N);
	emit(JUMP, outer);
	program[end] = size;
	emit(HALT, 0);
}

FUNCTION long run(long limit)
{
	long stack[32], variable[4] = {0, 0, 0, limit}, *top = stack;
	for (const int *pc = program;; pc += 2) {
		switch (pc[0]) {
		case PUSH: *top++ = pc[1]; break;
		case GET: *top++ = variable[pc[1]]; break;
		case SET: variable[pc[1]] = *--top; break;
		case ADD: top--; top[-1] += top[0]; break;
		case MUL: top--; top[-1] *= top[0]; break;
		case REM: top--; top[-1] %= top[0]; break;
		case LESS: top--; top[-1] = top[-1] < top[0]; break;
		case UNLESS: if (!*--top) pc = program + pc[1] - 2; break;
		case JUMP: pc = program + pc[1] - 2; break;
		case HALT: return variable[FOUND];
		}
	}
}

int main(int argc, char **argv)
{
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		assemble();
		sum += run(20000);
	}
	printf("%ld\n", sum);
}
