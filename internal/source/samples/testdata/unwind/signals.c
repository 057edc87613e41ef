// Stacks that are hard to unwind: recursion without frame pointers, callbacks of the C
// library, a signal handler, functions that are reached through the PLT, system calls.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile long total;

__attribute__((noinline)) static void spin(long n)
{
	for (long i = 0; i < n; i++)
		total += i;
}

static void on_alarm(int signal)
{
	(void)signal;
	spin(100000);
}

__attribute__((noinline)) static int recurse(int depth)
{
	volatile char room[64];
	memset((void *)room, depth, sizeof room);
	if (depth == 0) {
		spin(300000);
		return 1;
	}
	return recurse(depth - 1) + room[3];
}

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (x > y) - (x < y);
}

__attribute__((noinline)) static void sort(void)
{
	static int list[20000];
	for (int i = 0; i < 20000; i++)
		list[i] = rand();
	qsort(list, 20000, sizeof list[0], compare);
}

__attribute__((noinline)) static void print(void)
{
	char text[100];
	for (int i = 0; i < 4000; i++)
		snprintf(text, sizeof text, "%d %f", i, (double)i);
}

__attribute__((noinline)) static void ask(void)
{
	char text[100];
	FILE *f = fopen("/proc/self/stat", "r");
	for (int i = 0; i < 20 && f; i++) {
		rewind(f);
		total += fread(text, 1, sizeof text, f);
	}
	if (f)
		fclose(f);
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval every = {{0, 5000}, {0, 5000}};
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; i < 40; i++) {
		recurse(20);
		sort();
		print();
		ask();
	}
	return 0;
}
