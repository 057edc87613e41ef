/* A table is filled and doubled, along its columns or along its rows. IBM's article on the
   CPI breakdown of POWER7 has such a pair: cache_miss and cache_hit. */
#include <stdio.h>
#include <stdlib.h>

enum { n = 1000 };
static int table[n][n];

#ifdef ROWS
#define CELL(i, j) table[i][j] /* neighbours in memory */
#else
#define CELL(i, j) table[j][i] /* 4000 bytes apart */
#endif

__attribute__((noinline)) static void fill(void) {
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			CELL(i, j) = rand() % 100;
}

__attribute__((noinline)) static void twice(void) {
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			CELL(i, j) *= 2;
}

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	fill();
	while (rounds-- > 0)
		twice();
	printf("%d\n", table[n / 2][n / 3] != 1);
}
