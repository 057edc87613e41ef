// Hashing: eight bytes at a time, by a table of tables, and a checksum of sums.
#include "programs.h"

enum { SIZE = 1 << 18 };
static unsigned char data[SIZE];
static uint32_t tables[8][256];

FUNCTION void prepare(void)
{
	for (int i = 0; i < 256; i++) {
		uint32_t c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
		tables[0][i] = c;
	}
	for (int i = 0; i < 256; i++)
		for (int t = 1; t < 8; t++)
			tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 255];
}

FUNCTION uint64_t mix(const unsigned char *p, long n)
{
	uint64_t h = n, k;
	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&k, p, 8);
		k *= 0xc6a4a7935bd1e995u;
		k ^= k >> 47;
		h = (h ^ k * 0xc6a4a7935bd1e995u) * 0xc6a4a7935bd1e995u;
	}
	return h;
}

FUNCTION uint32_t sliced(const unsigned char *p, long n)
{
	uint32_t c = ~0u, a, b;
	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&a, p, 4);
		memcpy(&b, p + 4, 4);
		a ^= c;
		c = tables[7][a & 255] ^ tables[6][a >> 8 & 255] ^ tables[5][a >> 16 & 255] ^ tables[4][a >> 24] ^
		    tables[3][b & 255] ^ tables[2][b >> 8 & 255] ^ tables[1][b >> 16 & 255] ^ tables[0][b >> 24];
	}
	return ~c;
}

FUNCTION uint32_t sums(const unsigned char *p, long n)
{
	uint32_t a = 1, b = 0;
	while (n > 0) {
		long some = n < 5552 ? n : 5552;
		n -= some;
		for (; some > 0; some--)
			a += *p++, b += a;
		a %= 65521, b %= 65521;
	}
	return b << 16 | a;
}

int main(int argc, char **argv)
{
	uint64_t sum = 0;
	prepare();
	for (int i = 0; i < SIZE; i++)
		data[i] = any();
	for (int r = rounds(argc, argv); r > 0; r--, data[r % SIZE]++)
		sum += mix(data, SIZE) + mix(data + 8, SIZE - 8) + sliced(data, SIZE) + sums(data, SIZE);
	printf("%lx\n", (long)sum);
}
