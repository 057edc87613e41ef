// Reversals of the beginning of permutations, until 1 is first: as in the Benchmarks Game.
#include "programs.h"

enum { N = 9 };

FUNCTION int flips(const int *order)
{
	int p[N], n = 0;
	for (int i = 0; i < N; i++)
		p[i] = order[i];
	for (; p[0]; n++)
		for (int low = 0, high = p[0]; low < high; low++, high--) {
			int t = p[low];
			p[low] = p[high];
			p[high] = t;
		}
	return n;
}

// Makes the next permutation, in the order of the alphabet; 0 after the last.
FUNCTION int next(int *p)
{
	int i = N - 2, j = N - 1;
	while (i >= 0 && p[i] > p[i + 1])
		i--;
	if (i < 0)
		return 0;
	while (p[j] < p[i])
		j--;
	int t = p[i];
	p[i] = p[j];
	p[j] = t;
	for (int low = i + 1, high = N - 1; low < high; low++, high--) {
		t = p[low];
		p[low] = p[high];
		p[high] = t;
	}
	return 1;
}

int main(int argc, char **argv)
{
	int most = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		int p[N];
		for (int i = 0; i < N; i++)
			p[i] = i;
		do {
			int n = flips(p);
			if (n > most)
				most = n;
		} while (next(p));
	}
	printf("%d\n", most);
}
