// Allocation: trees of nodes from malloc are made, searched and freed.
#include "programs.h"

enum { NODES = 20000 };
struct node { struct node *left, *right; uint32_t key; };

FUNCTION struct node *insert(struct node *root, uint32_t key)
{
	struct node **at = &root;
	while (*at)
		at = key < (*at)->key ? &(*at)->left : &(*at)->right;
	*at = calloc(1, sizeof **at);
	(*at)->key = key;
	return root;
}

FUNCTION int find(const struct node *n, uint32_t key)
{
	while (n && n->key != key)
		n = key < n->key ? n->left : n->right;
	return n != NULL;
}

FUNCTION void release(struct node *n)
{
	if (!n)
		return;
	release(n->left);
	release(n->right);
	free(n);
}

FUNCTION long strings(void)
{
	static char *kept[1024];
	long sum = 0;
	for (int i = 0; i < 20000; i++) {
		int at = any() % 1024, n = 16 + any() % 200;
		free(kept[at]);
		kept[at] = malloc(n);
		memset(kept[at], 'x', n);
		sum += kept[at][n / 2];
	}
	return sum;
}

int main(int argc, char **argv)
{
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		struct node *root = NULL;
		for (int i = 0; i < NODES; i++)
			root = insert(root, any() % (8 * NODES));
		for (int i = 0; i < NODES; i++)
			sum += find(root, any() % (8 * NODES));
		release(root);
		sum += strings();
	}
	printf("%ld\n", sum);
}
