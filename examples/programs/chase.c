/* Fault: a list in random order, larger than the caches. Each step waits for memory. */
#include <stdio.h>
#include <stdlib.h>

struct node { struct node *next; char pad[56]; };

__attribute__((noinline)) long chase(struct node *n, long steps) {
	long sum = 0;
	while (steps-- > 0) {
		n = n->next; /* here */
		sum += (long)n & 64;
	}
	return sum;
}

int main(int argc, char **argv) {
	long steps = argc > 1 ? atol(argv[1]) : 5000000, size = 1 << 20, seed = 1;
	struct node *list = calloc(size, sizeof *list);
	for (long i = 0; i < size; i++) list[i].next = &list[i];
	for (long i = size - 1; i > 0; i--) { /* one cycle through all, Sattolo's */
		seed = (seed * 1103515245 + 12345) & 0x7fffffff;
		long j = seed % i;
		struct node *other = list[i].next;
		list[i].next = list[j].next, list[j].next = other;
	}
	printf("%ld\n", chase(list, steps));
}
