#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct point { double x, y; };

static inline double square(double v) { return v * v; }

static inline double distance(struct point a, struct point b)
{
	double dx = a.x - b.x, dy = a.y - b.y;
	return square(dx) + square(dy);
}

__attribute__((noinline)) double path(const struct point *p, int n)
{
	double sum = 0;
	for (int i = 1; i < n; i++)
		sum += distance(p[i - 1], p[i]);
	return sum;
}

__attribute__((noinline)) int classify(int c)
{
	switch (c) {
	case 'a': return 1;
	case 'b': return 7;
	case 'c': return 3;
	case 'd': return 9;
	case 'e': return abs(c - 4);
	case 'f': return 5;
	case 'g': return 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100;
	struct point *p = calloc(n, sizeof *p);
	if (!p)
		return 1;
	for (int i = 0; i < n; i++) {
		p[i].x = i * 0.5;
		p[i].y = square(i);
	}
	int kinds = 0;
	for (const char *s = "abcdefg"; *s; s++)
		kinds += classify(*s);
	printf("%g %d %zu\n", path(p, n), kinds, strlen(argv[0]));
	free(p);
	return 0;
}
