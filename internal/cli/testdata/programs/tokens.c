// A program like a compiler's front: words into a tree of malloc'd nodes, evaluated and freed.
#include "programs.h"
#include <ctype.h>

struct node { char op; long value; struct node *left, *right; };
static char text[1 << 16];
static const char *at;

FUNCTION char *generate(char *to, int depth)
{
	if (depth == 0 || any() % 8 == 0)
		return to + sprintf(to, "%d", (int)(any() % 1000));
	*to++ = '(';
	to = generate(to, depth - 1);
	*to++ = "+-*"[any() % 3];
	to = generate(to, depth - 1);
	*to++ = ')';
	return to;
}

FUNCTION struct node *parse(void)
{
	struct node *n = calloc(1, sizeof *n);
	if (*at == '(') {
		at++;
		n->left = parse();
		n->op = *at++;
		n->right = parse();
		at++;
		return n;
	}
	while (isdigit((unsigned char)*at))
		n->value = n->value * 10 + *at++ - '0';
	return n;
}

FUNCTION long evaluate(const struct node *n)
{
	switch (n->op) {
	case '+': return evaluate(n->left) + evaluate(n->right);
	case '-': return evaluate(n->left) - evaluate(n->right);
	case '*': return evaluate(n->left) * evaluate(n->right) % 1000003;
	}
	return n->value;
}

FUNCTION void drop(struct node *n)
{
	if (n->left)
		drop(n->left), drop(n->right);
	free(n);
}

int main(int argc, char **argv)
{
	long sum = 0;
	do
		*generate(text, 10) = 0;
	while (strlen(text) < 2000);
	for (int r = rounds(argc, argv); r > 0; r--) {
		at = text;
		struct node *tree = parse();
		for (int i = 0; i < 4; i++)
			sum += evaluate(tree);
		drop(tree);
	}
	printf("%ld\n", sum);
}
