// Measures the loops of a file as loops.txt on this machine, and prints the file with the
// cycles found:
//
//	cc -O2 -o measure measure.c && ./measure < loops.txt > loops-NAME.txt
//
// A cycle is a link of a chain of additions, which is timed next to each run. There is no
// PMU in this: the least of many runs counts. A loop that faults is left out.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

enum { TURNS = 4000, RUNS = 120, BUFFER = 1 << 16 };

typedef void loop(void);
static uint8_t *at;
static uint64_t saved, *result;
static uint8_t *buffer;

static void emit(const char *bytes, int n) { memcpy(at, bytes, n); at += n; }
static void emit8(const char *bytes, int n, uint64_t value) { emit(bytes, n); memcpy(at, &value, 8); at += 8; }

// build writes a function that executes code TURNS times; a turn ends in dec %r14; jnz.
static loop *build(uint8_t *start, const uint8_t *code, int length, int times) {
	at = start;
	emit("\x53\x55\x41\x54\x41\x55\x41\x56\x41\x57", 10); // push the registers to keep
	emit8("\x48\xb8", 2, (uint64_t)&saved);               // movabs $saved,%rax
	emit("\x48\x89\x20", 3);                              // mov %rsp,(%rax)
	emit8("\x48\xbe", 2, (uint64_t)buffer + BUFFER / 4);  // rsi
	emit8("\x48\xbf", 2, (uint64_t)buffer + BUFFER / 2);  // rdi
	emit8("\x48\xbc", 2, (uint64_t)buffer + BUFFER * 3 / 4); // rsp
	emit("\x31\xc0\x31\xdb\x31\xd2\x31\xed", 8);
	emit("\xb9\x07\x00\x00\x00", 5);                      // mov $7,%ecx
	emit("\x45\x31\xc0\x45\x31\xc9\x45\x31\xd2\x45\x31\xdb\x45\x31\xe4\x45\x31\xed\x45\x31\xff", 21);
	emit("\x41\xbe", 2); int turns = TURNS; memcpy(at, &turns, 4); at += 4;
	while ((uintptr_t)at & 63) *at++ = 0x90;
	uint8_t *top = at;
	for (int i = 0; i < times; i++) emit((const char *)code, length);
	emit("\x49\xff\xce\x0f\x85", 5);
	int32_t back = top - (at + 4); memcpy(at, &back, 4); at += 4;
	emit8("\x48\xb8", 2, (uint64_t)&saved);
	emit("\x48\x8b\x20", 3);
	emit("\xc5\xf8\x77", 3); // vzeroupper
	emit("\x41\x5f\x41\x5e\x41\x5d\x41\x5c\x5d\x5b\xc3", 11);
	return (loop *)start;
}

static uint64_t ticks(loop *f) {
	_mm_lfence(); uint64_t a = __rdtsc(); _mm_lfence();
	f();
	_mm_lfence(); uint64_t b = __rdtsc(); _mm_lfence();
	return b - a;
}

static double measure(const uint8_t *code, int length, int times) {
	// add %rax,%rax: Golden Cove does not execute additions of constants.
	static const uint8_t add[3] = {0x48, 0x01, 0xc0};
	uint8_t *area = mmap(0, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	loop *test = build(area, code, length, times), *clock = build(area + (1 << 19), add, 3, 8);
	uint64_t best = ~0ul, additions = ~0ul;
	for (int i = 0; i < RUNS; i++) {
		for (int j = 0; j < BUFFER / 8; j++) ((uint64_t *)buffer)[j] = 0;
		uint64_t t = ticks(clock); if (t < additions) additions = t;
		t = ticks(test); if (t < best) best = t;
	}
	return best * 8.0 / additions;
}

int main(void) {
	static char line[1 << 16];
	result = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	buffer = mmap((void *)0x10000000, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (fgets(line, sizeof line, stdin)) {
		if (line[0] == '#') continue;
		char *rest = strchr(line, '\t');
		if (!rest) continue;
		int times = atoi(++rest); char *hex = strchr(rest, '\t'), *text;
		if (!hex || !(text = strchr(++hex, '\t'))) continue;
		uint8_t code[4096]; int length = 0;
		for (char *p = hex; p + 1 < text && length < 4096; p += 2) { unsigned x; sscanf(p, "%2x", &x); code[length++] = x; }
		result[0] = 0;
		pid_t pid = fork();
		if (!pid) {
			alarm(20);
			_mm_setcsr(0x9fc0);
			double cycles = measure(code, length, times);
			memcpy(&result[1], &cycles, 8); result[0] = 1;
			_exit(0);
		}
		int status; waitpid(pid, &status, 0);
		if (!result[0]) continue;
		double cycles; memcpy(&cycles, &result[1], 8);
		char *wrong = strstr(text, "  # wrong"); if (wrong) strcpy(wrong, "\n");
		printf("%.2f\t%d\t%.*s%s", cycles, times, (int)(text - hex), hex, text);
		fflush(stdout);
	}
}
