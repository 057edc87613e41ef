/* The source of tiny.elf and tiny-compressed.elf, the seeds of fuzzing:
 *
 *	gcc -g -O2 -nostdlib -static -fcf-protection=none -ffile-prefix-map=$PWD=/src -Wl,-z,max-page-size=4096 -o tiny.elf tiny.c
 *	gcc -gdwarf-4 -gz -O2 -nostdlib -static -fcf-protection=none -ffile-prefix-map=$PWD=/src -Wl,-z,max-page-size=4096 -o tiny-compressed.elf tiny.c
 */
static inline int square(int n) { return n * n; }

__attribute__((noinline)) int sum(int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += square(i);
	return s;
}

void _start(void)
{
	volatile int s = sum(10);
	for (;;)
		s++;
}
