// Functions with a known fault in the core, one each. The caches and the branch predictor
// have little to do with their time. A comment says what is wrong, and at which line.
//
//	cc -O2 -g -o faults faults.c
//	cyclestack core ./faults sum
//	cyclestack stat -- ./faults sum
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION __attribute__((noinline, noclone, optimize("no-tree-vectorize", "no-unroll-loops")))
#define N 1024

typedef struct node {
	struct node *next;
	uint64_t value;
} node;

static double a[N], b[N];
static float f[N];
static uint32_t u[N];
static uint16_t w[N];
static uint8_t text[N + 64], *bytes = text;
static node list[N];
static uint64_t total;

// Each addition waits for the one before.
FUNCTION double sum(void) {
	double s = 0;
	for (int i = 0; i < N; i++)
		s += a[i]; // accumulator
	return s;
}

// A product of sums: the multiplication of each iteration waits for the one before.
FUNCTION double product(void) {
	double p = 1;
	for (int i = 0; i < N; i++)
		p *= a[i]; // accumulator
	return p;
}

// Horner's rule: a multiplication and an addition in a chain.
FUNCTION double horner(double x) {
	double p = 0;
	for (int i = 0; i < N; i++)
		p = p * x + a[i]; // multiply chain
	return p;
}

// The FNV hash of bytes.
FUNCTION uint64_t hash(void) {
	uint64_t h = 14695981039346656037u;
	for (int i = 0; i < N; i++)
		h = (h ^ text[i]) * 1099511628211u; // multiply chain
	return h;
}

// A walk along a list, as the first laboratory on dependence chains has.
FUNCTION uint64_t walk(void) {
	uint64_t s = 0;
	for (const node *n = list; n; n = n->next) // pointer chase
		s += n->value;
	return s;
}

// A random number generator, whose state goes from step to step, as the second has.
FUNCTION uint32_t xorshift(uint32_t x) {
	for (int i = 0; i < N; i++) {
		x ^= x << 13; // chain
		x ^= x >> 17;
		x ^= x << 5;
	}
	return x;
}

// A checksum with an end-around carry, as the second laboratory on vectors has.
FUNCTION uint16_t checksum(void) {
	uint16_t s = 0;
	for (int i = 0; i < N; i++) {
		s += w[i];
		s += s < w[i]; // carry chain
	}
	return s;
}

// The longest line of a text, as the second laboratory on intrinsics has: byte by byte.
FUNCTION unsigned longest(void) {
	unsigned best = 0, at = 0;
	for (int i = 0; i < N; i++) {
		at = text[i] == '\n' ? 0 : at + 1; // scalar code
		best = at > best ? at : best;
	}
	return best;
}

// A window that slides over the data, as the first laboratory on intrinsics has.
FUNCTION void smooth(void) {
	uint32_t s = 0;
	for (int i = 8; i < N; i++) {
		s += u[i] - u[i - 8]; // chain
		w[i] = s;
	}
}

// Divisions of numbers that are ready.
FUNCTION void divide(double d) {
	for (int i = 0; i < N; i++)
		b[i] = a[i] / d; // divisions
}

// Each division waits for the one before.
FUNCTION double fraction(void) {
	double x = 1;
	for (int i = 0; i < N; i++)
		x = a[i] / (x + 1); // division chain
	return x;
}

// A sum in memory, as for a variable that is volatile.
FUNCTION void inMemory(volatile uint64_t *sum, const uint64_t *from) {
	for (int i = 0; i < N / 2; i++)
		*sum += from[i]; // memory variable
}

// The least number, with a conditional move.
FUNCTION uint32_t least(void) {
	uint32_t m = ~0u;
	for (int i = 0; i < N; i++)
		__asm__("cmp %1,%0\n\tcmova %1,%0" : "+r"(m) : "r"(u[i] * 3) : "cc"); // select chain
	return m;
}

// A move of a byte keeps the rest of the register and waits for it.
FUNCTION uint32_t partial(void) {
	uint32_t s = 0, x = 0;
	for (int i = 0; i < N; i++) {
		__asm__("movb %b1,%b0" : "+q"(x) : "q"(i)); // partial register
		x *= 16777619;
		s += x;
	}
	return s;
}

// Two halves are stored and read as one.
FUNCTION uint64_t halves(void) {
	uint64_t s = 0;
	union { uint32_t half[2]; uint64_t whole; } v;
	for (int i = 0; i < N; i++) {
		__asm__ volatile("movl %k1,%0\n\tmovl %k1,4+%0" : "=m"(v) : "r"((uint32_t)i + (uint32_t)s));
		__asm__ volatile("movq %1,%0" : "=r"(s) : "m"(v)); // blocked forwarding
	}
	return s;
}

// A square root keeps the upper half of its destination and waits for it.
FUNCTION double roots(void) {
	double s = 0;
	for (int i = 0; i < N; i++) {
		double r;
		__asm__("sqrtsd %1,%%xmm7\n\tmovapd %%xmm7,%0" : "=x"(r) : "m"(a[i]) : "xmm7"); // false dependence
		s += r;
	}
	return s;
}

// Shuffles that only one port of Intel's cores executes.
FUNCTION __attribute__((target("ssse3"))) void shuffle(void) {
	const __m128i order = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	for (int i = 0; i < N; i += 16) {
		__m128i v = _mm_loadu_si128((const __m128i *)(bytes + i));
		v = _mm_shuffle_epi8(v, order); // shuffles
		v = _mm_shuffle_epi32(v, 0x1b);
		v = _mm_shufflelo_epi16(v, 0x1b);
		v = _mm_shufflehi_epi16(v, 0x1b);
		_mm_storeu_si128((__m128i *)(bytes + i), v);
	}
}

// Sums with four loads for each number.
FUNCTION void neighbours(void) {
	for (int i = 8; i < N - 8; i++)
		f[i & 7] = f[i - 1] + f[i + 1] + f[i - 8] + f[i + 8] + f[i + 2]; // loads
}

// One float at a time, although nothing depends on the one before.
FUNCTION void scale(float x) {
	for (int i = 0; i < N; i++)
		f[i] = f[i] * x + 1; // scalar code
}

int main(int argc, char **argv) {
	const char *name = argc > 1 ? argv[1] : "sum";
	long times = argc > 2 ? atol(argv[2]) : 1000000;
	double x = 0;
	for (int i = 0; i < N; i++) {
		a[i] = 1 + 1.0 / (i + 1), u[i] = w[i] = i * 2654435761u, text[i] = i % 61 == 60 ? '\n' : 'a' + i % 26;
		list[i].next = i + 1 < N ? list + i + 1 : NULL;
	}
	for (long i = 0; i < times; i++) {
		if (!strcmp(name, "sum")) x += sum();
		else if (!strcmp(name, "product")) x += product();
		else if (!strcmp(name, "horner")) x += horner(0.5);
		else if (!strcmp(name, "hash")) x += hash();
		else if (!strcmp(name, "walk")) x += walk();
		else if (!strcmp(name, "xorshift")) x += xorshift(i + 1);
		else if (!strcmp(name, "checksum")) x += checksum();
		else if (!strcmp(name, "longest")) x += longest();
		else if (!strcmp(name, "smooth")) smooth();
		else if (!strcmp(name, "divide")) divide(3 + x);
		else if (!strcmp(name, "fraction")) x += fraction();
		else if (!strcmp(name, "inMemory")) inMemory(&total, (const uint64_t *)u);
		else if (!strcmp(name, "least")) x += least();
		else if (!strcmp(name, "partial")) x += partial();
		else if (!strcmp(name, "halves")) x += halves();
		else if (!strcmp(name, "roots")) x += roots();
		else if (!strcmp(name, "shuffle")) shuffle();
		else if (!strcmp(name, "neighbours")) neighbours();
		else if (!strcmp(name, "scale")) scale(0.5f);
		else return fprintf(stderr, "faults: no function %s\n", name), 2;
	}
	printf("%s %g\n", name, x + total + b[7] + f[9] + w[9]);
	return 0;
}
