// A program that does what its argument says.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int grid[1000][1000];

long columns(int n) {
	long sum = 0;
	for (int j = 0; j < n; j++)
		for (int i = 0; i < 1000; i++)
			sum += grid[i][j]++;
	return sum;
}

long rows(int n) {
	long sum = 0;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < 1000; j++)
			sum += grid[i][j]++;
	return sum;
}

long before(void) {
	volatile long sum = 0;
	for (int i = 0; i < 200000; i++)
		sum += i;
	return sum;
}

long child(void) {
	volatile long sum = 0;
	for (int i = 0; i < 100000; i++)
		sum += i;
	return sum;
}

static void *thread(void *arg) {
	child();
	return arg;
}

int main(int argc, char **argv) {
	const char *what = argc > 1 ? argv[1] : "rows";
	int n = argc > 2 ? atoi(argv[2]) : 1000;
	long sum = 0;
	if (!strcmp(what, "rows"))
		sum += rows(n);
	if (!strcmp(what, "columns"))
		sum += columns(n);
	if (!strcmp(what, "fork")) {
		before();
		if (fork() == 0) {
			child();
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
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "forever"))
		for (;;)
			before();
	printf("%ld\n", sum);
	return !strcmp(what, "seven") ? 7 : 0;
}
