/* A chain of multiplications, of three cycles each on all x86-64 processors of the last fifteen
   years. Its processor time says how many cycles a second of processor time has on a busy
   machine: interrupts, and what a hypervisor takes, are part of the time of other programs too. */
#include <stdlib.h>

int main(int argc, char **argv)
{
	unsigned long x = 3;
	for (long i = argc > 1 ? atol(argv[1]) * 1000000 : 0; i > 0; i -= 4)
		__asm__ volatile("imul %0,%0\n\timul %0,%0\n\timul %0,%0\n\timul %0,%0" : "+r"(x));
	return x == 2; /* never */
}
