// Points of a plane that stay near the origin: as in the Benchmarks Game.
#include "programs.h"

enum { N = 128, LIMIT = 50 };

FUNCTION int row(double y)
{
	int inside = 0;
	for (int i = 0; i < N; i++) {
		double x = 2.0 * i / N - 1.5, re = 0, im = 0;
		int n = 0;
		for (; n < LIMIT && re * re + im * im < 4; n++) {
			double t = re * re - im * im + x;
			im = 2 * re * im + y;
			re = t;
		}
		inside += n == LIMIT;
	}
	return inside;
}

int main(int argc, char **argv)
{
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--)
		for (int i = 0; i < N; i++)
			sum += row(2.0 * i / N - 1);
	printf("%ld\n", sum);
}
