// Trees that are made, walked and freed: as in the Benchmarks Game.
#include "programs.h"

typedef struct tree { struct tree *left, *right; } tree;

FUNCTION tree *make(int depth)
{
	tree *t = malloc(sizeof *t);
	t->left = t->right = NULL;
	if (depth > 0) {
		t->left = make(depth - 1);
		t->right = make(depth - 1);
	}
	return t;
}

FUNCTION int count(const tree *t) { return t->left ? 1 + count(t->left) + count(t->right) : 1; }

FUNCTION void drop(tree *t)
{
	if (t->left) {
		drop(t->left);
		drop(t->right);
	}
	free(t);
}

int main(int argc, char **argv)
{
	long sum = 0;
	tree *kept = make(12);
	for (int r = rounds(argc, argv); r > 0; r--)
		for (int depth = 4; depth <= 14; depth += 5) {
			tree *t = make(depth);
			sum += count(t);
			drop(t);
		}
	printf("%ld %d\n", sum, count(kept));
}
