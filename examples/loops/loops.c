// Three loops over a pointer to itself, with a store next to the load: the loops of an answer
// about Sandy Bridge and Ivy Bridge, where they take 5.4, 8.9 and 6.6 cycles an iteration.
// The program measures them here, in cycles of a chain of additions, without counters:
//
//	cc -O2 -o loops loops.c && ./loops
//
// cyclestack core ./loops case1 says what the model of the core makes of each.
#include <stdint.h>
#include <stdio.h>
#include <x86intrin.h>

#define LOOP(name, body) \
	__asm__(".text\n.globl " name "\n.type " name ",@function\n.p2align 6\n" name ":\n1:\n" body "\tdec %rsi\n\tjne 1b\n\tret\n.size " name ",.-" name "\n");

// The load and the store's address wait for the load of the iteration before.
LOOP("case1", "\tmov %eax,8(%rdi)\n\tmov (%rdi),%rdi\n")
// The store's address waits for the load of its own iteration.
LOOP("case2", "\tmov (%rdi),%rdi\n\tmov %eax,8(%rdi)\n")
// A second load next to the store.
LOOP("case3", "\tmov (%rdi),%rdi\n\tmov %eax,8(%rdi)\n\tmov 16(%rdi),%edx\n")
// Four additions, each waiting for the one before, are four cycles: the clock.
LOOP("additions", "\tadd %rax,%rax\n\tadd %rax,%rax\n\tadd %rax,%rax\n\tadd %rax,%rax\n")

typedef void (*loop)(void *, uint64_t);
void case1(void *, uint64_t), case2(void *, uint64_t), case3(void *, uint64_t), additions(void *, uint64_t);

static uint64_t ticks(loop f, uint64_t iterations) {
	static void *node[8] __attribute__((aligned(64)));
	node[0] = node;
	uint64_t start = __rdtsc();
	f(node, iterations);
	return __rdtsc() - start;
}

int main(void) {
	static const struct { const char *name; loop run; } loops[] = {{"case1", case1}, {"case2", case2}, {"case3", case3}};
	const uint64_t n = 20000;
	for (int i = 0; i < 3; i++) {
		uint64_t best = ~0ull, clock = ~0ull;
		for (int k = 0; k < 400; k++) { // the least of each is the one that nothing disturbed
			uint64_t t = ticks(loops[i].run, n), c = ticks(additions, n);
			best = t < best ? t : best;
			clock = c < clock ? c : clock;
		}
		printf("%s %.2f\n", loops[i].name, 4.0 * best / clock);
	}
	return 0;
}
