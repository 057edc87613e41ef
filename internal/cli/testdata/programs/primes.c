// Numbers: a sieve, greatest common divisors, powers modulo a prime.
#include "programs.h"

enum { SIZE = 1 << 18 };
static unsigned char composite[SIZE];

FUNCTION int sieve(void)
{
	int n = 0;
	memset(composite, 0, SIZE);
	for (int i = 2; i < SIZE; i++)
		if (!composite[i]) {
			n++;
			for (long j = (long)i * i; j < SIZE; j += i)
				composite[j] = 1;
		}
	return n;
}

FUNCTION uint64_t divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t t = a % b;
		a = b, b = t;
	}
	return a;
}

FUNCTION uint64_t power(uint64_t x, uint64_t n, uint64_t m)
{
	uint64_t v = 1;
	for (; n; n >>= 1, x = x * x % m)
		if (n & 1)
			v = v * x % m;
	return v;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		sum += sieve();
		for (int i = 0; i < 2000; i++)
			sum += divisor(any() >> 20, any() >> 20) + power(any() >> 33, any() >> 34, 1000000007);
	}
	printf("%lu\n", (unsigned long)sum);
}
