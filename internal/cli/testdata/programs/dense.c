// Dense loops: product of matrices, a stencil and a transposition.
#include "programs.h"

enum { N = 256 };
static double a[N][N], b[N][N], c[N][N];

FUNCTION void multiply(void)
{
	memset(c, 0, sizeof c);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				c[i][j] += a[i][k] * b[k][j];
}

FUNCTION void smooth(void)
{
	for (int i = 1; i < N - 1; i++)
		for (int j = 1; j < N - 1; j++)
			b[i][j] = 0.2 * (a[i][j] + a[i - 1][j] + a[i + 1][j] + a[i][j - 1] + a[i][j + 1]);
}

FUNCTION void transpose(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = c[j][i] * 1e-5;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = b[i][j] = i + j;
	for (int r = rounds(argc, argv); r > 0; r--) {
		multiply();
		for (int i = 0; i < 20; i++) {
			transpose();
			smooth();
		}
	}
	printf("%g\n", c[7][9]);
}
