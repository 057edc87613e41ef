/* The program of docs/annotate.md, in bin/: gcc -O1 -g1 -gdwarf-4 -static -nostdlib -ffreestanding */

struct node {
	struct node *next;
	long value;
};

__attribute__((noinline)) long solve(const struct node *p, const long *a, long rows, long columns)
{
	long sum = 0;

	/* Each step has to wait for the one before. */
	for (; p; p = p->next)
		sum += p->value;

	/* Here the addresses are known ahead. */
	for (long i = 0; i < rows; i++) {
		long row = 0;
		for (long j = 0; j < columns; j++)
			row += 3 * a[i * columns + j];
		sum ^= row;
	}
	return sum;
}

static struct node nodes[1000];
static long array[100 * 20];

void _start(void)
{
	for (int i = 0; i < 999; i++)
		nodes[i].next = &nodes[i + 1];
	long result = solve(nodes, array, 100, 20);
	__asm__ volatile("syscall" : : "a"(60), "D"(result & 1) : "memory");
	__builtin_unreachable();
}
