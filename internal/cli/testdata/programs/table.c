// Hash tables: one with open addresses and one with lists, filled and asked.
#include "programs.h"

enum { BITS = 15, SIZE = 1 << BITS, KEYS = SIZE / 2 };
static uint64_t key[SIZE];
static int count[SIZE], head[SIZE];
static struct { uint64_t key; int next; } entry[KEYS];

static inline unsigned place(uint64_t k) { return k * 11400714819323198485u >> (64 - BITS); }

FUNCTION void fill(void)
{
	memset(key, 0, sizeof key);
	for (int i = 0; i < KEYS; i++) {
		uint64_t k = any() % (2 * KEYS) + 1;
		unsigned at = place(k);
		while (key[at] && key[at] != k)
			at = (at + 1) % SIZE;
		key[at] = k;
		count[at]++;
	}
}

FUNCTION long ask(void)
{
	long found = 0;
	for (int i = 0; i < 2 * KEYS; i++) {
		uint64_t k = any() % (4 * KEYS) + 1;
		unsigned at = place(k);
		while (key[at] && key[at] != k)
			at = (at + 1) % SIZE;
		found += key[at] == k;
	}
	return found;
}

FUNCTION void link_all(void)
{
	memset(head, -1, sizeof head);
	for (int i = 0; i < KEYS; i++) {
		entry[i].key = any() % (2 * KEYS) + 1;
		unsigned at = place(entry[i].key);
		entry[i].next = head[at];
		head[at] = i;
	}
}

FUNCTION long follow(void)
{
	long found = 0;
	for (int i = 0; i < 2 * KEYS; i++) {
		uint64_t k = any() % (4 * KEYS) + 1;
		for (int e = head[place(k)]; e >= 0; e = entry[e].next)
			if (entry[e].key == k) {
				found++;
				break;
			}
	}
	return found;
}

int main(int argc, char **argv)
{
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		fill();
		sum += ask();
		link_all();
		sum += follow();
	}
	printf("%ld\n", sum);
}
