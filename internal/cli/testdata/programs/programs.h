// What the programs share: numbers in no order, and how often each is to do its work.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION static __attribute__((noinline, noclone))

static uint64_t seed = 88172645463325252u;

static inline uint64_t any(void) // xorshift
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static inline int rounds(int argc, char **argv)
{
	return argc > 1 ? atoi(argv[1]) : 1;
}
