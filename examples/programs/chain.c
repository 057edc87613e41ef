/* Fault: each addition waits for the one before. The adder could begin two in a cycle. */
#include <stdio.h>
#include <stdlib.h>

enum { n = 4096 };
static double x[n];

__attribute__((noinline)) double sum_all(void) {
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += x[i]; /* here */
	return sum;
}

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 400000;
	double sum = 0;
	for (int i = 0; i < n; i++) x[i] = i;
	for (long i = 0; i < rounds; i++) x[0] = i, sum += sum_all();
	printf("%g\n", sum);
}
