// The largest eigenvalue of a matrix that is computed where it is needed: as in the
// Benchmarks Game.
#include "programs.h"

enum { N = 300 };
static double u[N], v[N], w[N];

FUNCTION void rows(const double *in, double *out)
{
	for (int i = 0; i < N; i++) {
		double sum = 0;
		for (int j = 0; j < N; j++)
			sum += in[j] / ((i + j) * (i + j + 1) / 2 + i + 1);
		out[i] = sum;
	}
}

FUNCTION void columns(const double *in, double *out)
{
	for (int i = 0; i < N; i++) {
		double sum = 0;
		for (int j = 0; j < N; j++)
			sum += in[j] / ((i + j) * (i + j + 1) / 2 + j + 1);
		out[i] = sum;
	}
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++)
		u[i] = 1;
	for (int r = rounds(argc, argv); r > 0; r--) {
		rows(u, w);
		columns(w, v);
		rows(v, w);
		columns(w, u);
	}
	printf("%g\n", u[0] > v[0] ? u[0] : v[0]);
}
