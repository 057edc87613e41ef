/* Fault: a branch depends on random data. Every second prediction is wrong. */
#include <stdio.h>
#include <stdlib.h>

enum { n = 1 << 16 };
static int data[n];
volatile long odd, even;

__attribute__((noinline)) long count_large(void) {
	long found = 0;
	for (int i = 0; i < n; i++) {
		if (data[i] > 1 << 14) /* here */
			found += data[i] ^ i, odd++;
		else
			found -= i;
	}
	return found;
}

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 3000, sum = 0;
	unsigned seed = 1;
	for (int i = 0; i < n; i++) data[i] = (seed = seed * 1103515245u + 12345u) >> 16 & 0x7fff;
	for (long i = 0; i < rounds; i++) sum += count_large();
	printf("%ld\n", sum);
}
