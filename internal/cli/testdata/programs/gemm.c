// A product of matrices, row by row: a kernel as in PolyBench.
#include "programs.h"

enum { N = 160 };
static double a[N][N], b[N][N], c[N][N];

FUNCTION void multiply(double alpha, double beta)
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++)
			c[i][j] *= beta;
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				c[i][j] += alpha * a[i][k] * b[k][j];
	}
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = (i * j + 1) % N / (double)N;
			b[i][j] = (i * (j + 1)) % N / (double)N;
		}
	for (int r = rounds(argc, argv); r > 0; r--)
		multiply(1.5, 0.5);
	printf("%g\n", c[N / 2][N / 3]);
}
