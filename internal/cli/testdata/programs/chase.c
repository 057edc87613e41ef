// Pointer chasing: lists in no order, one that fits the first-level cache, one the
// second and one neither.
#include "programs.h"

struct node { struct node *next; long pad[7]; };
enum { LARGE = 1 << 15, MIDDLE = 1 << 12, SMALL = 1 << 8, STEPS = 1 << 18 };
static struct node large[LARGE], middle[MIDDLE], little[SMALL];

FUNCTION void shuffle(struct node *list, int n)
{
	for (int i = 0; i < n; i++)
		list[i].next = list + i;
	for (int i = n - 1; i > 0; i--) { // Sattolo: one cycle
		int j = any() % i;
		struct node *p = list[i].next;
		list[i].next = list[j].next;
		list[j].next = p;
	}
}

FUNCTION struct node *far(struct node *p)
{
	for (int i = 0; i < STEPS; i++)
		p = p->next;
	return p;
}

FUNCTION struct node *near(struct node *p)
{
	for (int i = 0; i < 2 * STEPS; i++)
		p = p->next;
	return p;
}

FUNCTION struct node *nearest(struct node *p)
{
	for (int i = 0; i < 3 * STEPS; i++)
		p = p->next;
	return p;
}

int main(int argc, char **argv)
{
	shuffle(large, LARGE);
	shuffle(middle, MIDDLE);
	shuffle(little, SMALL);
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--)
		sum += (far(large + r) - large) + (near(middle + r % MIDDLE) - middle) + (nearest(little + r % SMALL) - little);
	printf("%ld\n", sum);
}
