// Sparse loops: steps of conjugate gradients with a matrix of which each row has a few
// elements anywhere.
#include "programs.h"

enum { ROWS = 60000, EACH = 8 };
static int column[ROWS * EACH];
static double value[ROWS * EACH], x[ROWS], y[ROWS], p[ROWS];

FUNCTION void multiply(const double *in, double *out)
{
	for (int i = 0; i < ROWS; i++) {
		double sum = 0;
		for (int j = i * EACH; j < (i + 1) * EACH; j++)
			sum += value[j] * in[column[j]];
		out[i] = sum;
	}
}

FUNCTION double dot(const double *a, const double *b)
{
	double sum = 0;
	for (int i = 0; i < ROWS; i++)
		sum += a[i] * b[i];
	return sum;
}

FUNCTION void add(double *a, const double *b, double times)
{
	for (int i = 0; i < ROWS; i++)
		a[i] = 0.5 * a[i] + times * b[i];
}

int main(int argc, char **argv)
{
	for (int i = 0; i < ROWS * EACH; i++) {
		column[i] = any() % ROWS;
		value[i] = 1.0 / (1 + any() % 64);
	}
	for (int i = 0; i < ROWS; i++)
		x[i] = p[i] = 1;
	for (int r = rounds(argc, argv); r > 0; r--) {
		multiply(p, y);
		add(x, y, 1 / (1 + dot(p, y)));
		add(p, x, 0.25);
	}
	printf("%g\n", dot(x, x));
}
