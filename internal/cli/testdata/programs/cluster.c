// Points in space: k means, and the nearest neighbours by a tree and one by one.
#include "programs.h"
#include <math.h>

enum { POINTS = 4096, MEANS = 12, SIDES = 6, NEAR = 8 };
static float points[POINTS][SIDES], means[MEANS][SIDES], plane[SIDES][POINTS];
static int nearest[POINTS], order[POINTS], lower[POINTS], upper[POINTS];

FUNCTION int assign(void)
{
	int changed = 0;
	for (int i = 0; i < POINTS; i++) {
		int best = 0;
		float least = INFINITY;
		for (int m = 0; m < MEANS; m++) {
			float sum = 0;
			for (int k = 0; k < SIDES; k++) {
				float d = points[i][k] - means[m][k];
				sum += d * d;
			}
			if (sum < least)
				least = sum, best = m;
		}
		changed += nearest[i] != best;
		nearest[i] = best;
	}
	return changed;
}

FUNCTION void centres(void)
{
	int count[MEANS] = {0};
	memset(means, 0, sizeof means);
	for (int i = 0; i < POINTS; i++) {
		count[nearest[i]]++;
		for (int k = 0; k < SIDES; k++)
			means[nearest[i]][k] += points[i][k];
	}
	for (int m = 0; m < MEANS; m++)
		for (int k = 0; k < SIDES; k++)
			means[m][k] /= count[m] ? count[m] : 1;
}

static int axis;

static int compare(const void *a, const void *b)
{
	float x = points[*(const int *)a][axis], y = points[*(const int *)b][axis];
	return (x > y) - (x < y);
}

FUNCTION int grow(int from, int to, int depth)
{
	if (from >= to)
		return -1;
	axis = depth % SIDES;
	qsort(order + from, to - from, sizeof *order, compare);
	int middle = (from + to) / 2, at = order[middle];
	lower[at] = grow(from, middle, depth + 1);
	upper[at] = grow(middle + 1, to, depth + 1);
	return at;
}

FUNCTION void descend(const float *x, int at, int depth, float *least)
{
	if (at < 0)
		return;
	float sum = 0, side = x[depth % SIDES] - points[at][depth % SIDES];
	for (int k = 0; k < SIDES; k++)
		sum += (x[k] - points[at][k]) * (x[k] - points[at][k]);
	if (sum < least[NEAR - 1]) {
		int i = NEAR - 1;
		for (; i > 0 && least[i - 1] > sum; i--)
			least[i] = least[i - 1];
		least[i] = sum;
	}
	descend(x, side < 0 ? lower[at] : upper[at], depth + 1, least);
	if (side * side < least[NEAR - 1])
		descend(x, side < 0 ? upper[at] : lower[at], depth + 1, least);
}

FUNCTION void distances(const float *x, float *to) // to all points, an axis at a time
{
	for (int i = 0; i < POINTS; i++)
		to[i] = 0;
	for (int k = 0; k < SIDES; k++)
		for (int i = 0; i < POINTS; i++)
			to[i] += (plane[k][i] - x[k]) * (plane[k][i] - x[k]);
}

FUNCTION int within(const float *d, float most)
{
	int n = 0;
	for (int i = 0; i < POINTS; i++)
		n += d[i] < most;
	return n;
}

int main(int argc, char **argv)
{
	static float all[POINTS];
	double sum = 0;
	for (int i = 0; i < POINTS; i++) {
		order[i] = i;
		for (int k = 0; k < SIDES; k++)
			plane[k][i] = points[i][k] = (float)(any() % 1000) / 100 + (any() % 5) * 8;
	}
	int root = grow(0, POINTS, 0);
	for (int r = rounds(argc, argv); r > 0; r--) {
		for (int m = 0; m < MEANS; m++)
			memcpy(means[m], points[any() % POINTS], sizeof means[m]);
		for (int i = 0; i < 5 && assign(); i++)
			centres();
		for (int i = 0; i < 40; i++) {
			const float *x = points[any() % POINTS];
			float least[NEAR];
			for (int k = 0; k < NEAR; k++)
				least[k] = INFINITY;
			descend(x, root, 0, least);
			sum += least[NEAR - 1];
		}
		for (int i = 0; i < 40; i++) {
			distances(points[any() % POINTS], all);
			sum += within(all, 300);
		}
	}
	printf("%.6g\n", sum);
}
