// A grid whose points become the mean of their neighbours in place: a kernel as in
// PolyBench.
#include "programs.h"

enum { N = 200 };
static double a[N][N];

FUNCTION void sweep(void)
{
	for (int i = 1; i < N - 1; i++)
		for (int j = 1; j < N - 1; j++)
			a[i][j] = (a[i - 1][j - 1] + a[i - 1][j] + a[i - 1][j + 1] + a[i][j - 1] + a[i][j] + a[i][j + 1] +
				a[i + 1][j - 1] + a[i + 1][j] + a[i + 1][j + 1]) / 9;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = (i * (j + 2.0) + 2) / N;
	for (int r = rounds(argc, argv); r > 0; r--)
		sweep();
	printf("%g\n", a[N / 2][N / 3]);
}
