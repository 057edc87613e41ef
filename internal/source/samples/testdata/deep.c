/* A program of known stacks: main calls work, which calls a function that calls itself
 * and then leaf, and another. */
#include <stdint.h>

static volatile uint64_t sink;

uint64_t leaf(uint64_t n)
{
	uint64_t x = n;
	for (uint64_t i = 0; i < n; i++)
		x = x * 6364136223846793005ull + 1442695040888963407ull;
	return x;
}

uint64_t other(uint64_t n)
{
	uint64_t x = n;
	for (uint64_t i = 0; i < n; i++)
		x ^= x * 3 + i;
	return x;
}

uint64_t recurse(int depth, uint64_t n)
{
	if (depth == 0)
		return leaf(n);
	uint64_t r = recurse(depth - 1, n);
	sink += r;
	return r + 1;
}

void work(uint64_t n)
{
	sink += recurse(2, n);
	sink += other(n / 2);
	sink++;
}

int main(void)
{
	for (int i = 0; i < 30; i++)
		work(4000000);
	return sink == 42;
}
