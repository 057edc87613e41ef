// A database in small: a B-tree with its pages, and a cache of those used last.
#include "programs.h"

enum { KEYS = 31, PAGES = 1 << 13, RECORDS = 60000, SLOTS = 4096, KEPT = 3000 };
struct page { int count, leaf; uint32_t key[KEYS]; int value[KEYS], child[KEYS + 1]; };
static struct page pages[PAGES];
static int used, root;

struct entry { uint32_t key; int before, after, chain; uint64_t value; }; // 0 is the list's head
static struct entry entries[KEPT + 1];
static int slots[SLOTS], kept;

FUNCTION int place(const struct page *p, uint32_t key)
{
	int low = 0, high = p->count;
	while (low < high) {
		int middle = (low + high) / 2;
		if (p->key[middle] < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

FUNCTION void split(struct page *parent, int at)
{
	struct page *full = &pages[parent->child[at]], *more = &pages[used];
	int half = KEYS / 2;
	more->leaf = full->leaf;
	more->count = KEYS - half - 1;
	memcpy(more->key, full->key + half + 1, more->count * sizeof *more->key);
	memcpy(more->value, full->value + half + 1, more->count * sizeof *more->value);
	if (!full->leaf)
		memcpy(more->child, full->child + half + 1, (more->count + 1) * sizeof *more->child);
	full->count = half;
	memmove(parent->key + at + 1, parent->key + at, (parent->count - at) * sizeof *parent->key);
	memmove(parent->value + at + 1, parent->value + at, (parent->count - at) * sizeof *parent->value);
	memmove(parent->child + at + 2, parent->child + at + 1, (parent->count - at) * sizeof *parent->child);
	parent->key[at] = full->key[half], parent->value[at] = full->value[half];
	parent->child[at + 1] = used++;
	parent->count++;
}

FUNCTION int insert(uint32_t key, int value)
{
	if (pages[root].count == KEYS) {
		pages[used] = (struct page){.child = {root}};
		root = used++;
		split(&pages[root], 0);
	}
	struct page *p = &pages[root];
	for (;;) {
		int at = place(p, key);
		if (at < p->count && p->key[at] == key)
			return 0;
		if (p->leaf) {
			for (int i = p->count++; i > at; i--)
				p->key[i] = p->key[i - 1], p->value[i] = p->value[i - 1];
			p->key[at] = key, p->value[at] = value;
			return 1;
		}
		if (pages[p->child[at]].count == KEYS) {
			split(p, at);
			if (p->key[at] == key)
				return 0;
			at += p->key[at] < key;
		}
		p = &pages[p->child[at]];
	}
}

FUNCTION uint64_t lookup(uint32_t key)
{
	for (const struct page *p = &pages[root];;) {
		int at = place(p, key);
		if (at < p->count && p->key[at] == key)
			return p->value[at] + 1;
		if (p->leaf)
			return 0;
		p = &pages[p->child[at]];
	}
}

FUNCTION uint64_t range(int page, uint32_t from, uint32_t to)
{
	const struct page *p = &pages[page];
	uint64_t sum = 0;
	int i = place(p, from);
	for (; i < p->count && p->key[i] <= to; i++) {
		if (!p->leaf)
			sum += range(p->child[i], from, to);
		sum += p->key[i];
	}
	return p->leaf ? sum : sum + range(p->child[i], from, to);
}

static inline unsigned slot(uint32_t key)
{
	return key * 2654435769u >> 20;
}

static inline void link_(int e)
{
	entries[e].before = 0, entries[e].after = entries[0].after;
	entries[entries[0].after].before = e;
	entries[0].after = e;
}

static inline void unlink_(int e)
{
	entries[entries[e].before].after = entries[e].after;
	entries[entries[e].after].before = entries[e].before;
}

FUNCTION void forget(int e)
{
	int *to = &slots[slot(entries[e].key)];
	while (*to != e)
		to = &entries[*to].chain;
	*to = entries[e].chain;
	unlink_(e);
}

FUNCTION uint64_t cached(uint32_t key)
{
	int e = slots[slot(key)];
	while (e && entries[e].key != key)
		e = entries[e].chain;
	if (e) {
		unlink_(e);
	} else {
		if (kept < KEPT)
			e = ++kept;
		else
			forget(e = entries[0].before);
		entries[e].key = key, entries[e].value = lookup(key);
		entries[e].chain = slots[slot(key)], slots[slot(key)] = e;
	}
	link_(e);
	return entries[e].value;
}

int main(int argc, char **argv)
{
	static uint32_t keys[RECORDS];
	uint64_t sum = 0;
	for (int i = 0; i < RECORDS; i++)
		keys[i] = any() % 10000000;
	for (int r = rounds(argc, argv); r > 0; r--) {
		used = 1, root = 0;
		pages[0] = (struct page){.leaf = 1};
		for (int i = 0; i < RECORDS / 4; i++)
			sum += insert(keys[(i + r * 37) % RECORDS], i);
		for (int i = 0; i < RECORDS * 3 / 4; i++) {
			uint64_t a = any(), b = a >> 32;
			sum += cached(keys[(a & 0xffff) * (b & 0xffff) / 262144 % RECORDS]); // small numbers more often
		}
		for (int i = 0; i < 300; i++) {
			uint32_t from = any() % 9000000;
			sum += range(root, from, from + 300000);
		}
	}
	printf("%llu\n", (unsigned long long)sum);
}
