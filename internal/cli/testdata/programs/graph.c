// Graphs: breadth first, connected parts, and shortest ways over lists of edges.
#include "programs.h"

enum { NODES = 50000, EACH = 6 };
static int edge[NODES][EACH], level[NODES], queue[NODES], part[NODES];
static unsigned way[NODES];

FUNCTION int breadth(int start)
{
	int in = 0, out = 0;
	memset(level, -1, sizeof level);
	level[start] = 0;
	queue[in++] = start;
	while (out < in) {
		int n = queue[out++];
		for (int i = 0; i < EACH; i++) {
			int m = edge[n][i];
			if (level[m] < 0) {
				level[m] = level[n] + 1;
				queue[in++] = m;
			}
		}
	}
	return level[queue[in - 1]];
}

FUNCTION int root(int n)
{
	while (part[n] != n)
		n = part[n] = part[part[n]];
	return n;
}

FUNCTION int parts(void)
{
	int number = NODES;
	for (int n = 0; n < NODES; n++)
		part[n] = n;
	for (int n = 0; n < NODES; n++)
		for (int i = 0; i < 2; i++) {
			int a = root(n), b = root(edge[n][i]);
			number -= a != b;
			part[a] = b;
		}
	return number;
}

FUNCTION unsigned relax(void)
{
	unsigned sum = 0;
	memset(way, 1, sizeof way);
	way[0] = 0;
	for (int turn = 0; turn < 2; turn++)
		for (int n = 0; n < NODES; n++)
			for (int i = 0; i < EACH; i++) {
				unsigned far = way[n] + (n ^ edge[n][i]) % 64;
				if (far < way[edge[n][i]])
					way[edge[n][i]] = far, sum++;
			}
	return sum;
}

int main(int argc, char **argv)
{
	for (int n = 0; n < NODES; n++)
		for (int i = 0; i < EACH; i++)
			edge[n][i] = any() % NODES;
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--)
		sum += breadth(r % NODES) + parts() + relax();
	printf("%ld\n", sum);
}
