// A matrix into triangles, by inner products along rows and columns: a kernel as in
// PolyBench.
#include "programs.h"

enum { N = 160 };
static double a[N][N], b[N][N];

FUNCTION void decompose(void)
{
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < i; j++) {
			for (int k = 0; k < j; k++)
				a[i][j] -= a[i][k] * a[k][j];
			a[i][j] /= a[j][j];
		}
		for (int j = i; j < N; j++)
			for (int k = 0; k < i; k++)
				a[i][j] -= a[i][k] * a[k][j];
	}
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			b[i][j] = i == j ? 2 * N : (i * 7 + j * 3) % 11 / 11.0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		memcpy(a, b, sizeof a);
		decompose();
	}
	printf("%g\n", a[N / 2][N / 3]);
}
