/* Fault: a system call for every byte. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) long read_bytes(int fd, long n) {
	long sum = 0;
	char c;
	while (n-- > 0)
		sum += read(fd, &c, 1); /* here */
	return sum;
}

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 6000000;
	int fd = open("/dev/zero", O_RDONLY);
	return read_bytes(fd, n) != n;
}
