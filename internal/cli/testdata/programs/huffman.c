// Compression: Huffman codes are made, and text is written and read in them.
#include "programs.h"

enum { SIZE = 1 << 17 };
static unsigned char text[SIZE], again[SIZE], bits[SIZE * 2];
static int length[256], order[256];
static uint32_t code[256];
static struct { unsigned char symbol, length; } lookup[1 << 15];

FUNCTION void generate(void)
{
	for (int i = 0; i < SIZE; i++)
		text[i] = 'a' + (any() & any() & 31) % 26;
}

FUNCTION void lengths(void)
{
	long weight[512];
	int parent[512], alive[512], n = 256, count[256] = {0};
	for (int i = 0; i < SIZE; i++)
		count[text[i]]++;
	int live = 0;
	for (int i = 0; i < 256; i++)
		if (weight[i] = count[i], count[i])
			alive[live++] = i;
	while (live > 1) {
		for (int k = 0; k < 2; k++) { // the two least to the end
			int least = 0;
			for (int i = 1; i < live - k; i++)
				if (weight[alive[i]] < weight[alive[least]])
					least = i;
			int t = alive[least];
			alive[least] = alive[live - 1 - k], alive[live - 1 - k] = t;
		}
		parent[alive[live - 1]] = parent[alive[live - 2]] = n;
		weight[n] = weight[alive[live - 1]] + weight[alive[live - 2]];
		alive[--live - 1] = n++;
	}
	for (int i = 0; i < 256; i++) {
		length[i] = 0;
		for (int at = i; count[i] && at != n - 1; at = parent[at])
			length[i]++;
	}
}

FUNCTION void codes(void)
{
	uint32_t next = 0;
	int at = 0;
	for (int l = 1; l <= 15; l++, next <<= 1)
		for (int s = 0; s < 256; s++)
			if (length[s] == l) {
				code[s] = next++;
				order[at++] = s;
				for (uint32_t k = 0; k < 1u << (15 - l); k++)
					lookup[code[s] << (15 - l) | k].symbol = s, lookup[code[s] << (15 - l) | k].length = l;
			}
}

FUNCTION long encode(void)
{
	uint64_t hold = 0;
	int held = 0;
	long at = 0;
	for (int i = 0; i < SIZE; i++) {
		hold = hold << length[text[i]] | code[text[i]];
		held += length[text[i]];
		while (held >= 8)
			bits[at++] = hold >> (held -= 8);
	}
	bits[at++] = hold << (8 - held);
	bits[at] = bits[at + 1] = bits[at + 2] = 0;
	return at;
}

FUNCTION void decode(void)
{
	uint64_t hold = 0;
	int held = 0;
	long at = 0;
	for (int i = 0; i < SIZE; i++) {
		while (held < 15)
			hold = hold << 8 | bits[at++], held += 8;
		int k = hold >> (held - 15) & 0x7fff;
		again[i] = lookup[k].symbol;
		held -= lookup[k].length;
	}
}

int main(int argc, char **argv)
{
	long sum = 0;
	generate();
	for (int r = rounds(argc, argv); r > 0; r--) {
		lengths();
		codes();
		sum += encode();
		decode();
	}
	printf("%ld %d\n", sum, memcmp(text, again, SIZE));
}
