// Sorting: quicksort down to small pieces, which insertion sorts, and a merge sort.
#include "programs.h"

enum { SIZE = 200000 };
static int numbers[SIZE], space[SIZE];

FUNCTION void insertion(int *a, int n)
{
	for (int i = 1; i < n; i++) {
		int x = a[i], j = i;
		for (; j > 0 && a[j - 1] > x; j--)
			a[j] = a[j - 1];
		a[j] = x;
	}
}

FUNCTION int partition(int *a, int n)
{
	int pivot = a[n / 2], i = -1, j = n;
	for (;;) {
		do i++; while (a[i] < pivot);
		do j--; while (a[j] > pivot);
		if (i >= j)
			return j + 1;
		int x = a[i];
		a[i] = a[j];
		a[j] = x;
	}
}

FUNCTION void quick(int *a, int n)
{
	while (n > 16) {
		int half = partition(a, n);
		quick(a, half);
		a += half;
		n -= half;
	}
	insertion(a, n);
}

FUNCTION void merge(int *a, int n)
{
	if (n < 2)
		return;
	int half = n / 2, i = 0, j = half, out = 0;
	merge(a, half);
	merge(a + half, n - half);
	while (i < half && j < n)
		space[out++] = a[i] <= a[j] ? a[i++] : a[j++];
	while (i < half)
		space[out++] = a[i++];
	memcpy(a, space, out * sizeof *a);
}

FUNCTION void fill(void)
{
	for (int i = 0; i < SIZE; i++)
		numbers[i] = any();
}

int main(int argc, char **argv)
{
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		fill();
		quick(numbers, SIZE);
		sum += numbers[SIZE / 3];
		fill();
		merge(numbers, SIZE);
		sum += numbers[SIZE / 3];
	}
	printf("%ld\n", sum);
}
