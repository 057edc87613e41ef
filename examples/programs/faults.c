/* Fault: memory is given back and taken again in every round. The kernel clears each page. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { size = 16 << 20, page = 4096 };

__attribute__((noinline)) long touch(char *p) {
	long sum = 0;
	for (long i = 0; i < size; i += page)
		sum += p[i] = 1; /* here */
	return sum;
}

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 150, sum = 0;
	for (long i = 0; i < rounds; i++) {
		char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED) return 1;
		sum += touch(p);
		munmap(p, size);
	}
	printf("%ld\n", sum);
}
