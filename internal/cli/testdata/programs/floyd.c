// All shortest ways of a graph: a kernel as in PolyBench.
#include "programs.h"

enum { N = 160 };
static int way[N][N], first[N][N];

FUNCTION void shorten(void)
{
	for (int k = 0; k < N; k++)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				if (way[i][k] + way[k][j] < way[i][j])
					way[i][j] = way[i][k] + way[k][j];
}

int main(int argc, char **argv)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			first[i][j] = any() % 8 ? 999 : 1 + any() % 100;
	for (int r = rounds(argc, argv); r > 0; r--) {
		memcpy(way, first, sizeof way);
		shorten();
	}
	printf("%d\n", way[N / 2][N / 3]);
}
