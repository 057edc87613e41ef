/* Prints how many cycles a second of processor time has, and how many additions a cycle. The first is of a
   chain of multiplications, of three cycles each on all x86-64 processors of the last fifteen years.
   Interrupts, and what a hypervisor takes, are part of the time of other programs too. The second is
   of four chains. It is less than 4 while another virtual machine uses the core's other thread. Then other
   programs take longer as well. The argument is millions of multiplications. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

#define FOUR "add $1,%0\n\tadd $1,%1\n\tadd $1,%2\n\tadd $1,%3\n\t"

int main(int argc, char **argv)
{
	const long all = argc > 1 ? atol(argv[1]) * 1000000 : 4;
	unsigned long a = 3, b = 0, c = 0, d = 0;
	double begin = seconds();
	for (long i = all; i > 0; i -= 4)
		__asm__ volatile("imul %0,%0\n\timul %0,%0\n\timul %0,%0\n\timul %0,%0" : "+r"(a));
	const double hz = 3 * all / (seconds() - begin);
	begin = seconds();
	for (long i = all; i > 0; i -= 4)
		__asm__ volatile(FOUR FOUR FOUR FOUR FOUR FOUR : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	printf("%.4g %.3f\n", hz, 6 * all / ((seconds() - begin) * hz));
	return 0;
}
