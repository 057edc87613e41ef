// Interpreter: a stack machine that calls a function for each instruction.
#include "programs.h"

struct machine;
typedef void operation(struct machine *);
struct machine { long stack[64], *top; int at; long steps; };
static unsigned char program[256];

FUNCTION void push(struct machine *m) { *++m->top = program[m->at++]; }
FUNCTION void dup_(struct machine *m) { m->top[1] = *m->top; m->top++; }
FUNCTION void swap(struct machine *m) { long t = m->top[0]; m->top[0] = m->top[-1]; m->top[-1] = t; }
FUNCTION void over(struct machine *m) { m->top[1] = m->top[-1]; m->top++; }
FUNCTION void add(struct machine *m) { m->top[-1] += m->top[0]; m->top--; }
FUNCTION void sub(struct machine *m) { m->top[-1] -= m->top[0]; m->top--; }
FUNCTION void mul(struct machine *m) { m->top[-1] *= m->top[0]; m->top--; }
FUNCTION void mod(struct machine *m) { m->top[-1] = (unsigned long)m->top[-1] % 10007; }
FUNCTION void jump(struct machine *m) { int to = program[m->at++]; if (*m->top-- != 0) m->at = to; }
FUNCTION void rot(struct machine *m) { long t = m->top[-2]; m->top[-2] = m->top[-1]; m->top[-1] = m->top[0]; m->top[0] = t; }
FUNCTION void halt(struct machine *m) { m->at = -1; }
static operation *const table[] = {push, dup_, swap, over, add, sub, mul, mod, jump, rot, halt};

FUNCTION long run(struct machine *m)
{
	while (m->at >= 0) {
		m->steps++;
		table[program[m->at++]](m);
	}
	return m->steps;
}

int main(int argc, char **argv)
{
	// n times x = (3 * x + 7) mod 10007
	static const unsigned char loop[] = {0, 1, 0, 200, 2, 0, 3, 6, 0, 7, 4, 7, 2, 0, 1, 5, 1, 8, 4, 10};
	struct machine m;
	long sum = 0;
	memcpy(program, loop, sizeof loop);
	for (int r = 1000 * rounds(argc, argv); r > 0; r--) {
		memset(&m, 0, sizeof m);
		m.top = m.stack + 8;
		sum += run(&m) + m.top[-1];
	}
	printf("%ld\n", sum);
}
