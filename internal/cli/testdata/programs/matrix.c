// Dense loops that the compiler makes vectors of: products in blocks, elimination, a norm.
#include "programs.h"

enum { N = 160, BLOCK = 32 };
static float a[N][N], b[N][N], c[N][N];
static double m[N][N];

FUNCTION void multiply(void)
{
	for (int ii = 0; ii < N; ii += BLOCK)
		for (int kk = 0; kk < N; kk += BLOCK)
			for (int i = ii; i < ii + BLOCK; i++)
				for (int k = kk; k < kk + BLOCK; k++) {
					float x = a[i][k];
					for (int j = 0; j < N; j++)
						c[i][j] += x * b[k][j];
				}
}

FUNCTION void eliminate(void)
{
	for (int k = 0; k < N; k++)
		for (int i = k + 1; i < N; i++) {
			double f = m[i][k] / m[k][k];
			for (int j = k; j < N; j++)
				m[i][j] -= f * m[k][j];
		}
}

FUNCTION double norm(void)
{
	double s = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			s += c[i][j] * c[i][j] + m[j][i];
	return s;
}

int main(int argc, char **argv)
{
	double sum = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = any() % 10, b[i][j] = any() % 10;
	for (int r = rounds(argc, argv); r > 0; r--) {
		memset(c, 0, sizeof c);
		multiply();
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				m[i][j] = a[i][j] + (i == j) * 1000;
		eliminate();
		sum += norm();
	}
	printf("%g\n", sum);
}
