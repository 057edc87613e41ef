// Floating point: bodies that attract each other, and the Mandelbrot set.
#include <math.h>
#include "programs.h"

enum { BODIES = 32, SIDE = 64 };
static struct { double x[3], v[3], mass; } body[BODIES];

FUNCTION void attract(void)
{
	for (int i = 0; i < BODIES; i++)
		for (int j = i + 1; j < BODIES; j++) {
			double d[3], square = 0.01;
			for (int k = 0; k < 3; k++) {
				d[k] = body[i].x[k] - body[j].x[k];
				square += d[k] * d[k];
			}
			double pull = 1e-3 / (square * sqrt(square));
			for (int k = 0; k < 3; k++) {
				body[i].v[k] -= d[k] * body[j].mass * pull;
				body[j].v[k] += d[k] * body[i].mass * pull;
			}
		}
}

FUNCTION void move(void)
{
	for (int i = 0; i < BODIES; i++)
		for (int k = 0; k < 3; k++)
			body[i].x[k] += 1e-3 * body[i].v[k];
}

FUNCTION long mandelbrot(void)
{
	long sum = 0;
	for (int row = 0; row < SIDE; row++)
		for (int col = 0; col < SIDE; col++) {
			double cx = col * 3.0 / SIDE - 2.2, cy = row * 2.4 / SIDE - 1.2, x = 0, y = 0;
			int n = 0;
			for (; n < 50 && x * x + y * y < 4; n++) {
				double t = x * x - y * y + cx;
				y = 2 * x * y + cy;
				x = t;
			}
			sum += n;
		}
	return sum;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < BODIES; i++) {
		for (int k = 0; k < 3; k++)
			body[i].x[k] = (any() % 1000) * 1e-3;
		body[i].mass = 1 + any() % 3;
	}
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		for (int i = 0; i < 50; i++) {
			attract();
			move();
		}
		sum += mandelbrot();
	}
	printf("%ld %g\n", sum, body[0].x[0]);
}
