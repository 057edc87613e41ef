// Planets that attract each other, in double precision: as in the Benchmarks Game.
#include "programs.h"
#include <math.h>

enum { BODIES = 5, STEPS = 20000 };
static struct { double at[3], speed[3], mass; } body[BODIES];

FUNCTION void step(double dt)
{
	for (int i = 0; i < BODIES; i++)
		for (int j = i + 1; j < BODIES; j++) {
			double d[3], square = 0;
			for (int k = 0; k < 3; k++) {
				d[k] = body[i].at[k] - body[j].at[k];
				square += d[k] * d[k];
			}
			double pull = dt / (square * sqrt(square));
			for (int k = 0; k < 3; k++) {
				body[i].speed[k] -= d[k] * body[j].mass * pull;
				body[j].speed[k] += d[k] * body[i].mass * pull;
			}
		}
	for (int i = 0; i < BODIES; i++)
		for (int k = 0; k < 3; k++)
			body[i].at[k] += dt * body[i].speed[k];
}

int main(int argc, char **argv)
{
	for (int i = 0; i < BODIES; i++) {
		body[i].mass = i ? 0.001 * i : 40;
		for (int k = 0; k < 3; k++) {
			body[i].at[k] = i * (k + 3) - 2 * k;
			body[i].speed[k] = i ? 0.5 * (k - 1) : 0;
		}
	}
	for (int r = rounds(argc, argv); r > 0; r--)
		for (int i = 0; i < STEPS; i++)
			step(0.001);
	printf("%.6f\n", body[1].at[0]);
}
