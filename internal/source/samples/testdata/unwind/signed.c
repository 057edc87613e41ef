// Calls whose return addresses are signed (-mbranch-protection=standard), with frames of
// variable size and a leaf function without a frame.
#include <stdlib.h>

volatile int total;

__attribute__((noinline)) void leaf(int n)
{
	total += n;
}

__attribute__((noinline)) int third(int n)
{
	volatile int room[100];
	room[n % 100] = n;
	leaf(n);
	return room[n % 100] + total;
}

__attribute__((noinline)) int second(int n)
{
	volatile int list[n + 10];
	list[n] = third(n + 1);
	return list[n] + n;
}

static int compare(const void *a, const void *b)
{
	return second(*(const int *)a) - *(const int *)b;
}

int main(int argc, char **argv)
{
	int list[2] = {argc + 3, argc};
	qsort(list, 2, sizeof list[0], compare);
	return list[0] + total;
}
