// Signals: a fast Fourier transform, a recursive filter, and a fit of least squares by
// Cholesky's decomposition.
#include "programs.h"
#include <math.h>

enum { SIZE = 4096, ORDER = 72 };
struct complex { double re, im; };
static struct complex roots[SIZE / 2], signal[SIZE], spectrum[SIZE];
static double samples[SIZE], smooth[SIZE], normal[ORDER][ORDER], right[ORDER];

FUNCTION void reorder(struct complex *to, const struct complex *from)
{
	unsigned j = 0;
	for (unsigned i = 0; i < SIZE; i++) {
		to[j] = from[i];
		unsigned bit = SIZE >> 1;
		for (; j & bit; bit >>= 1)
			j ^= bit;
		j |= bit;
	}
}

FUNCTION void transform(struct complex *a)
{
	for (int half = 1, step = SIZE / 2; half < SIZE; half *= 2, step /= 2)
		for (int i = 0; i < SIZE; i += 2 * half)
			for (int k = 0; k < half; k++) {
				struct complex w = roots[k * step], x = a[i + k], y = a[i + k + half];
				double re = y.re * w.re - y.im * w.im, im = y.re * w.im + y.im * w.re;
				a[i + k].re = x.re + re, a[i + k].im = x.im + im;
				a[i + k + half].re = x.re - re, a[i + k + half].im = x.im - im;
			}
}

FUNCTION double strongest(const struct complex *a)
{
	double most = 0;
	for (int i = 1; i < SIZE / 2; i++) {
		double power = sqrt(a[i].re * a[i].re + a[i].im * a[i].im);
		if (power > most)
			most = power;
	}
	return most;
}

FUNCTION void filter(const double *x, double *y) // two sections of second order
{
	double a1 = 0, a2 = 0, b1 = 0, b2 = 0;
	for (int i = 0; i < SIZE; i++) {
		double a = x[i] + 1.561 * a1 - 0.6414 * a2, out = 0.0201 * (a + 2 * a1 + a2);
		a2 = a1, a1 = a;
		double b = out + 1.143 * b1 - 0.4128 * b2;
		y[i] = 0.0675 * (b + 2 * b1 + b2);
		b2 = b1, b1 = b;
	}
}

FUNCTION void correlate(const double *x)
{
	for (int lag = 0; lag < ORDER; lag++) {
		double sum = 0;
		for (int i = lag; i < SIZE / 4; i++)
			sum += x[i] * x[i - lag];
		right[lag] = sum;
	}
	for (int i = 0; i < ORDER; i++)
		for (int j = 0; j < ORDER; j++)
			normal[i][j] = right[i < j ? j - i : i - j] + (i == j ? right[0] : 0);
}

FUNCTION void decompose(void)
{
	for (int j = 0; j < ORDER; j++) {
		for (int k = 0; k < j; k++)
			normal[j][j] -= normal[j][k] * normal[j][k];
		normal[j][j] = sqrt(normal[j][j]);
		for (int i = j + 1; i < ORDER; i++) {
			double sum = normal[i][j];
			for (int k = 0; k < j; k++)
				sum -= normal[i][k] * normal[j][k];
			normal[i][j] = sum / normal[j][j];
		}
	}
}

FUNCTION double solve(void)
{
	for (int i = 0; i < ORDER; i++) {
		for (int k = 0; k < i; k++)
			right[i] -= normal[i][k] * right[k];
		right[i] /= normal[i][i];
	}
	for (int i = ORDER - 1; i >= 0; i--) {
		for (int k = i + 1; k < ORDER; k++)
			right[i] -= normal[k][i] * right[k];
		right[i] /= normal[i][i];
	}
	return right[0];
}

int main(int argc, char **argv)
{
	double sum = 0;
	for (int i = 0; i < SIZE / 2; i++)
		roots[i] = (struct complex){cos(2 * M_PI * i / SIZE), -sin(2 * M_PI * i / SIZE)};
	for (int i = 0; i < SIZE; i++)
		samples[i] = sin(i * 0.37) + 0.5 * sin(i * 1.1) + (double)(any() % 1000) / 1000;
	for (int r = rounds(argc, argv); r > 0; r--) {
		filter(samples, smooth);
		filter(smooth, smooth);
		for (int i = 0; i < SIZE; i++)
			signal[i] = (struct complex){samples[i] - smooth[i], 0};
		reorder(spectrum, signal);
		transform(spectrum);
		sum += strongest(spectrum);
		correlate(smooth);
		decompose();
		sum += solve();
		samples[r % SIZE] += 0.01;
	}
	printf("%.6g\n", sum);
}
