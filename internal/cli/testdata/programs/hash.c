// Hashing: SHA-256, CRC-32 by table and FNV of the same bytes.
#include "programs.h"

enum { SIZE = 1 << 18 };
static unsigned char data[SIZE];
static uint32_t k[64], state[8], table[256];

static inline uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

FUNCTION void block(const unsigned char *p)
{
	uint32_t w[64], s[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(s, state, sizeof s);
	for (int i = 0; i < 64; i++) {
		uint32_t a = s[0], e = s[4];
		uint32_t t = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
		uint32_t u = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += t;
		s[0] = t + u;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

FUNCTION uint32_t crc(void)
{
	uint32_t c = ~0u;
	for (int i = 0; i < SIZE; i++)
		c = table[(c ^ data[i]) & 255] ^ c >> 8;
	return ~c;
}

FUNCTION uint64_t fnv(void)
{
	uint64_t h = 14695981039346656037u;
	for (int i = 0; i < SIZE; i++)
		h = (h ^ data[i]) * 1099511628211u;
	return h;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < SIZE; i++)
		data[i] = any();
	for (int i = 0; i < 64; i++)
		k[i] = any();
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320u : table[i] >> 1;
	}
	uint64_t sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		for (int i = 0; i < SIZE; i += 64)
			block(data + i);
		sum += crc() + fnv() + state[0];
	}
	printf("%lx\n", (long)sum);
}
