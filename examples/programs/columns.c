/* Fault: an array is walked along its columns. Each access is on another line of the cache. */
#include <stdio.h>
#include <stdlib.h>

enum { n = 2048 };
static int a[n][n];

__attribute__((noinline)) long sum_columns(void) {
	long sum = 0;
	for (int column = 0; column < n; column++)
		for (int row = 0; row < n; row++)
			sum += a[row][column]; /* here */
	return sum;
}

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 60, sum = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) a[i][j] = i ^ j;
	for (long i = 0; i < rounds; i++) a[0][0] = i, sum += sum_columns();
	printf("%ld\n", sum);
}
