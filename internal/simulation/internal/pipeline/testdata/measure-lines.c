// Measures a loop of five micro-ops that another loop repeats, in one line of 64 bytes and
// across two, on this machine:
//
//	cc -O1 -o lines measure-lines.c && ./lines
//
// A cycle is a third of a multiplication, of a chain that is timed next to each run. The
// least of many runs counts.
#include <stdint.h>
#include <stdio.h>
#include <x86intrin.h>

static uint64_t chain(void)
{
	uint64_t t = __rdtsc(), x = 3;
	for (int i = 0; i < 2000; i++)
		__asm__ volatile("imul %0,%0" : "+r"(x));
	return __rdtsc() - t;
}

#define LOOP(name, before) \
	static __attribute__((noinline)) void name(long outer, long rounds) \
	{ \
		__asm__ volatile("1: mov %1,%%rcx\n jmp 2f\n .p2align 6\n .skip " before ",0x90\n" \
			"2: lea 8(%%rsi),%%rsi\n lea 8(%%rdi),%%rdi\n lea 8(%%r8),%%r8\n lea 8(%%r9),%%r9\n" \
			"dec %%rcx\n jnz 2b\n dec %0\n jnz 1b\n" \
			: "+r"(outer) : "r"(rounds) : "rcx", "rsi", "rdi", "r8", "r9"); \
	}
LOOP(within, "8")
LOOP(across, "48")

static double cycles(void (*loop)(long, long), long rounds)
{
	double best = 1e18;
	long outer = 4000 / rounds + 1;
	for (int run = 0; run < 200; run++) {
		uint64_t before = chain(), t = __rdtsc();
		loop(outer, rounds);
		t = __rdtsc() - t;
		uint64_t after = chain();
		if (after < before * 1.02 && before < after * 1.02 && t * 6000.0 / before / outer / rounds < best)
			best = t * 6000.0 / before / outer / rounds;
	}
	return best;
}

int main(void)
{
	for (long rounds = 8; rounds <= 256; rounds *= 2)
		printf("%3ld rounds: %.2f cycles in a line, %.2f across two\n", rounds, cycles(within, rounds), cycles(across, rounds));
	return 0;
}
