/* Fault: it polls with a sleep instead of waiting for what it needs. */
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
	long rounds = argc > 1 ? atol(argv[1]) : 50;
	for (long i = 0; i < rounds; i++) usleep(10000); /* here */
	return 0;
}
