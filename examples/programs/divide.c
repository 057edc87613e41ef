/* Fault: a division by a variable for every digit. The divisor never changes. */
#include <stdio.h>
#include <stdlib.h>

volatile unsigned long base = 10;

__attribute__((noinline)) unsigned long digit_sum(unsigned long v, unsigned long by) {
	unsigned long sum = 0;
	while (v) {
		sum += v % by; /* here */
		v /= by;
	}
	return sum;
}

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 20000000;
	unsigned long sum = 0;
	for (long i = 0; i < rounds; i++) sum += digit_sum(0x7fffffffffffffffUL - i, base);
	printf("%lu\n", sum);
}
