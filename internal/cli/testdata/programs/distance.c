// Dynamic programming: edit distances, longest common subsequences, a knapsack.
#include "programs.h"

enum { N = 600, ITEMS = 100, ROOM = 5000 };
static char a[N + 1], b[N + 1];
static int row[N + 1], table[2][N + 1], best[ROOM + 1];

FUNCTION int edits(void)
{
	for (int j = 0; j <= N; j++)
		row[j] = j;
	for (int i = 1; i <= N; i++) {
		int corner = row[0];
		row[0] = i;
		for (int j = 1; j <= N; j++) {
			int v = corner + (a[i - 1] != b[j - 1]);
			corner = row[j];
			if (row[j] + 1 < v)
				v = row[j] + 1;
			if (row[j - 1] + 1 < v)
				v = row[j - 1] + 1;
			row[j] = v;
		}
	}
	return row[N];
}

FUNCTION int common(void)
{
	memset(table, 0, sizeof table);
	for (int i = 1; i <= N; i++)
		for (int j = 1; j <= N; j++) {
			int *now = table[i & 1], *last = table[~i & 1];
			now[j] = a[i - 1] == b[j - 1] ? last[j - 1] + 1 : last[j] > now[j - 1] ? last[j] : now[j - 1];
		}
	return table[N & 1][N];
}

FUNCTION int knapsack(void)
{
	memset(best, 0, sizeof best);
	for (int i = 0; i < ITEMS; i++) {
		int weight = 10 + i * 7 % 90, value = 5 + i * 13 % 70;
		for (int w = ROOM; w >= weight; w--)
			if (best[w - weight] + value > best[w])
				best[w] = best[w - weight] + value;
	}
	return best[ROOM];
}

int main(int argc, char **argv)
{
	long sum = 0;
	for (int i = 0; i < N; i++)
		a[i] = 'a' + any() % 4, b[i] = 'a' + any() % 4;
	for (int r = rounds(argc, argv); r > 0; r--) {
		sum += edits() + common() + knapsack();
		a[r % N] = 'a' + r % 4;
	}
	printf("%ld\n", sum);
}
