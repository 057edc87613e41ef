/* Sums random elements of 64 MB, or as many as ELEMENTS says, and branches on each. With the
   argument "ahead" it asks for an element eight rounds before it is needed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ELEMENTS
#define ELEMENTS (16 << 20)
#endif
enum { ORDER = 1 << 16 };

int main(int argc, char **argv)
{
	int ahead = argc > 1 && !strcmp(argv[1], "ahead");
	long rounds = argc > 2 ? atol(argv[2]) : 1;
	uint32_t *of = malloc(ELEMENTS * sizeof *of), *order = malloc((ORDER + 8) * sizeof *order);
	uint64_t random = 88172645463325252u, sum = 0;
	for (long i = 0; i < ELEMENTS; i++)
		of[i] = i * 2654435761u >> 7;
	for (long k = 0; k < rounds; k++) {
		for (long i = 0; i < ORDER + 8; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			order[i] = (random >> 40) % ELEMENTS;
		}
		for (long i = 0; i < ORDER; i++) {
			if (ahead)
				__builtin_prefetch(&of[order[i + 8]]);
			uint32_t v = of[order[i]];
			if (v & 1)
				sum += v ^ sum >> 3;
			else
				sum = sum * 5 + v;
		}
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
