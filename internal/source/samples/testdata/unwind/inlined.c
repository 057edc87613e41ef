// Functions that are inlined, one of which is called as well.
#include <stdlib.h>

static volatile double sink;

static inline __attribute__((always_inline)) long innermost(long n)
{
	double s = 0;
	for (int i = 0; i < 200; i++)
		s += n * i * 0.5;
	sink = s;
	return n;
}

static inline __attribute__((always_inline)) long middle(long n)
{
	for (int i = 0; i < 50; i++)
		sink += i;
	return innermost(n) + innermost(n + 1);
}

__attribute__((noinline)) static long leaf(long n)
{
	sink += n;
	return middle(n) + 1;
}

static long both(long n)
{
	for (int i = 0; i < 100; i++)
		sink += i * n;
	return n;
}

long (*volatile called)(long) = both;

int main(void)
{
	long s = 0;
	for (int i = 0; i < 150000; i++)
		s += leaf(i) + both(i) + called(i);
	return s & 1;
}
