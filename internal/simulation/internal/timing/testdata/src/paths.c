// A program whose branches are known: it does what its argument says.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))

volatile long sink;
static char from[1000], to[1000];

// A branch for each turn, and one more.
FUNCTION void turns(long n) {
	for (long i = 0; i < n; i++)
		sink += i;
}

// A branch that nobody can foresee.
FUNCTION long chance(long n) {
	unsigned long x = 88172645463325252UL;
	long sum = 0;
	for (long i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x & 1)
			sink = i;
		else
			sum += sink;
	}
	return sum;
}

FUNCTION long up(long n) { return n + 1; }
FUNCTION long down(long n) { return n - 1; }
FUNCTION long again(long n) { return n > 0 ? again(n - 1) + sink : 0; }
static long (*volatile both[])(long) = {up, down};

// Calls through a pointer, returns, and instructions that repeat.
FUNCTION long calls(long n) {
	long sum = 0;
	for (long i = 0; i < n; i++) {
		sum = both[i & 1](sum) + again(5);
#ifdef __x86_64__
		void *d = to, *s = from;
		long left = i % 100;
		__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(left) : : "memory");
#endif
	}
	return sum;
}

// Additions that wait for each other, and as many that do not.
FUNCTION long chain(long n) {
	long a = 1;
	for (long i = 0; i < n; i++)
		for (int j = 0; j < 8; j++)
			__asm__("imul %0, %0" : "+r"(a));
	return a;
}

FUNCTION long apart(long n) {
	long a = 1, b = 2, c = 3, d = 4;
	for (long i = 0; i < n; i++)
		for (int j = 0; j < 2; j++)
			__asm__("imul %0, %0; imul %1, %1; imul %2, %2; imul %3, %3" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	return a + b + c + d;
}

static void *thread(void *arg) {
	turns(30000);
	return arg;
}

int main(int argc, char **argv) {
	const char *what = argc > 1 ? argv[1] : "turns";
	if (!strcmp(what, "turns"))
		turns(30000);
	if (!strcmp(what, "all")) {
		turns(30000);
		sink = chance(30000) + calls(3000) + chain(5000) + apart(5000);
	}
	if (!strcmp(what, "fork")) {
		turns(20000);
		if (fork() == 0) {
			turns(10000);
			if (argc > 2)
				execv(argv[0], (char *[]){argv[0], "turns", NULL});
			_exit(0);
		}
		wait(NULL);
	}
	if (!strcmp(what, "threads")) {
		pthread_t t[3];
		for (int i = 0; i < 3; i++)
			pthread_create(&t[i], NULL, thread, NULL);
		for (int i = 0; i < 3; i++)
			pthread_join(t[i], NULL);
	}
	if (!strcmp(what, "lines"))
		for (int c; (c = getchar()) != EOF;)
			if (c == '\n')
				turns(1000);
	if (!strcmp(what, "forever"))
		for (;;)
			turns(1000);
	return 0;
}
