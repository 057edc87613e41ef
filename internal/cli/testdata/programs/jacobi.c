// A grid whose points become the mean of their neighbours, from one array to another: a
// kernel as in PolyBench.
#include "programs.h"

enum { N = 500 };
static double a[N][N], b[N][N];

FUNCTION void sweep(double (*from)[N], double (*to)[N])
{
	for (int i = 1; i < N - 1; i++)
		for (int j = 1; j < N - 1; j++)
			to[i][j] = 0.2 * (from[i][j] + from[i][j - 1] + from[i][j + 1] + from[i - 1][j] + from[i + 1][j]);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = b[i][j] = (i * (j + 2.0) + 2) / N;
	for (int r = rounds(argc, argv); r > 0; r--) {
		sweep(a, b);
		sweep(b, a);
	}
	printf("%g\n", a[N / 2][N / 3]);
}
