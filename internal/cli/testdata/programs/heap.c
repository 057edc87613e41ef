// Sorting: heapsort, Shell's sort and by digits.
#include "programs.h"

enum { SIZE = 1 << 16 };
static uint32_t numbers[SIZE], list[SIZE], spare[SIZE];

FUNCTION void sift(uint32_t *a, int at, int n)
{
	uint32_t v = a[at];
	for (int child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && a[child + 1] > a[child])
			child++;
		if (a[child] <= v)
			break;
		a[at] = a[child];
	}
	a[at] = v;
}

FUNCTION void heapsort_(uint32_t *a, int n)
{
	for (int i = n / 2 - 1; i >= 0; i--)
		sift(a, i, n);
	for (int i = n - 1; i > 0; i--) {
		uint32_t t = a[0];
		a[0] = a[i], a[i] = t;
		sift(a, 0, i);
	}
}

FUNCTION void shell(uint32_t *a, int n)
{
	for (int gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
		for (int i = gap; i < n; i++) {
			uint32_t v = a[i];
			int j = i;
			for (; j >= gap && a[j - gap] > v; j -= gap)
				a[j] = a[j - gap];
			a[j] = v;
		}
}

FUNCTION void digits(uint32_t *a, uint32_t *b, int n)
{
	for (int shift = 0; shift < 32; shift += 8) {
		int count[257] = {0};
		for (int i = 0; i < n; i++)
			count[(a[i] >> shift & 255) + 1]++;
		for (int i = 0; i < 256; i++)
			count[i + 1] += count[i];
		for (int i = 0; i < n; i++)
			b[count[a[i] >> shift & 255]++] = a[i];
		uint32_t *t = a;
		a = b, b = t;
	}
}

int main(int argc, char **argv)
{
	uint32_t sum = 0;
	for (int i = 0; i < SIZE; i++)
		numbers[i] = any();
	for (int r = rounds(argc, argv); r > 0; r--) {
		memcpy(list, numbers, sizeof list);
		heapsort_(list, SIZE);
		sum += list[r % SIZE];
		memcpy(list, numbers, sizeof list);
		shell(list, SIZE);
		sum += list[r % SIZE];
		memcpy(list, numbers, sizeof list);
		for (int i = 0; i < 4; i++)
			digits(list, spare, SIZE);
		sum += list[r % SIZE];
	}
	printf("%u\n", sum);
}
