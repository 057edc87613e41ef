// Regular expressions over the lines of a log: by backtracking, and by a set of states
// in the bits of a word; and a filter of wildcards.
#include "programs.h"

enum { SIZE = 1 << 15 };
enum { END, ONE, ANY, CLASS, FIRST, LAST };

struct node {
	unsigned char kind, repeated; // repeated: 0, '*', '+' or '?'
	unsigned char c;
	uint64_t set[4];
};

static char text[SIZE + 128];

FUNCTION void generate(void)
{
	static const char *words[] = {"error", "warning", "accepted", "connection", "from", "port", "user", "timeout", "closed", "reading"};
	char *p = text;
	while (p < text + SIZE) {
		p += sprintf(p, "%02d:%02d ", (int)(any() % 24), (int)(any() % 60));
		for (int n = 3 + any() % 5; n > 0 && p < text + SIZE; n--)
			p += any() % 4 ? sprintf(p, "%s ", words[any() % 10]) : sprintf(p, "%d.%d ", (int)(any() % 256), (int)(any() % 256));
		p[-1] = '\n';
	}
	*p = 0;
}

FUNCTION void compile(struct node *n, const char *p)
{
	for (; *p; n++) {
		memset(n, 0, sizeof *n);
		switch (n->c = *p++) {
		case '.': n->kind = ANY; break;
		case '^': n->kind = FIRST; break;
		case '$': n->kind = LAST; break;
		case '[':
			n->kind = CLASS;
			for (; *p != ']'; p++) {
				unsigned char from = *p, to = from;
				if (p[1] == '-')
					to = p[2], p += 2;
				for (int c = from; c <= to; c++)
					n->set[c >> 6] |= 1ull << (c & 63);
			}
			p++;
			break;
		default: n->kind = ONE;
		}
		if (*p == '*' || *p == '+' || *p == '?')
			n->repeated = *p++;
	}
	memset(n, 0, sizeof *n);
}

static inline int fits(const struct node *n, unsigned char c)
{
	switch (n->kind) {
	case ONE: return n->c == c;
	case ANY: return c != '\n' && c;
	case CLASS: return n->set[c >> 6] >> (c & 63) & 1;
	}
	return 0;
}

static const char *match(const struct node *n, const char *s);

FUNCTION const char *repeat(const struct node *n, const char *s)
{
	const char *least = s + (n->repeated == '+'), *most = s;
	while (fits(n, *most) && (n->repeated != '?' || most == s))
		most++;
	for (; most >= least; most--) {
		const char *end = match(n + 1, most);
		if (end)
			return end;
	}
	return NULL;
}

FUNCTION const char *match(const struct node *n, const char *s)
{
	for (; n->kind != END; n++) {
		if (n->repeated)
			return repeat(n, s);
		if (n->kind == LAST) {
			if (*s != '\n')
				return NULL;
			continue;
		}
		if (!fits(n, *s))
			return NULL;
		s++;
	}
	return s;
}

FUNCTION long search(const struct node *n) // bytes in matches
{
	long sum = 0;
	for (const char *s = text; *s;) {
		const char *end = NULL;
		if (n->kind == FIRST)
			end = match(n + 1, s);
		else
			for (; *s != '\n' && !(end = match(n, s)); s++)
				;
		if (end)
			sum += end - s;
		while (*s != '\n')
			s++;
		s++;
	}
	return sum;
}

FUNCTION long states(const struct node *n) // lines that match: all states at once
{
	uint64_t by[256] = {0}, loops = 0, skips = 0, last;
	int count = 0;
	for (; n[count].kind != END; count++) {
		for (int c = 0; c < 256; c++)
			if (fits(&n[count], c))
				by[c] |= 1ull << count;
		if (n[count].repeated == '*' || n[count].repeated == '+')
			loops |= 1ull << count;
		if (n[count].repeated == '*' || n[count].repeated == '?')
			skips |= 1ull << count;
	}
	last = 1ull << count;
	long lines = 0;
	uint64_t now = 1, seen = 0; // bit i: what stands before node i has matched
	for (const char *s = text; *s; s++) {
		now |= 1;
		for (uint64_t empty = now & skips; empty; empty &= skips)
			now |= empty <<= 1;
		seen |= now & last;
		uint64_t on = now & by[(unsigned char)*s];
		now = on << 1 | (on & loops);
		if (*s == '\n') {
			lines += seen != 0;
			now = 1, seen = 0;
		}
	}
	return lines;
}

FUNCTION int wildcard(const char *p, const char *s, const char *end)
{
	const char *star = NULL, *from = NULL;
	while (s < end) {
		if (*p == '*')
			star = p++, from = s;
		else if (*p == '?' || *p == *s)
			p++, s++;
		else if (star)
			p = star + 1, s = ++from;
		else
			return 0;
	}
	while (*p == '*')
		p++;
	return !*p;
}

FUNCTION long filter(const char *p)
{
	long lines = 0;
	for (const char *s = text, *end; *s; s = end + 1) {
		end = strchr(s, '\n');
		lines += wildcard(p, s, end);
	}
	return lines;
}

int main(int argc, char **argv)
{
	static const char *patterns[] = {"[0-9]+\\.[0-9]+$", "^[0-9]+:[0-5].*err?or", "us*er .*port .*from", "[a-z]*ing [a-z]+ t"};
	struct node nodes[64];
	long sum = 0;
	generate();
	for (int r = rounds(argc, argv); r > 0; r--) {
		for (int i = 0; i < 4; i++) {
			compile(nodes, patterns[i]);
			sum += search(nodes);
		}
		for (int i = 0; i < 2; i++) {
			compile(nodes, i ? "time?out [a-z]*ed [0-9]+.*port" : ".*c[lo]+[a-z]* [0-9]*.?user");
			sum += states(nodes);
		}
		sum += filter("*error*from*?port*") + filter("1*:*2 *closed *") + filter("*a*ing *o*t*e*") + filter("*:3? *1?.*user");
	}
	printf("%ld\n", sum);
}
