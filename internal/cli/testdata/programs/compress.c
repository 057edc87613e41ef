// Compression: LZ77 with a hash table of the last place of each three bytes.
#include "programs.h"

enum { SIZE = 1 << 20, HASH = 1 << 14 };
static unsigned char text[SIZE], packed[2 * SIZE], back[SIZE];
static int last[HASH];

FUNCTION void generate(void)
{
	static const char *word[] = {"the ", "cycle ", "of ", "branch", "cache", "load\n", "store ", "a", "stack ", "12"};
	for (int at = 0; at < SIZE - 16;) {
		const char *w = word[any() % 10];
		int n = strlen(w);
		memcpy(text + at, w, n);
		at += n;
	}
}

FUNCTION int match(int a, int b)
{
	int n = 0;
	while (b + n < SIZE && n < 255 && text[a + n] == text[b + n])
		n++;
	return n;
}

FUNCTION int compress(void)
{
	int out = 0;
	memset(last, -1, sizeof last);
	for (int i = 0; i < SIZE - 3;) {
		unsigned h = ((text[i] | text[i + 1] << 8 | text[i + 2] << 16) * 2654435761u) >> 18;
		int at = last[h], n = at >= 0 && i - at < 65535 ? match(at, i) : 0;
		last[h] = i;
		if (n < 4) {
			packed[out++] = 0;
			packed[out++] = text[i++];
			continue;
		}
		packed[out++] = n;
		packed[out++] = (i - at) & 255;
		packed[out++] = (i - at) >> 8;
		i += n;
	}
	return out;
}

FUNCTION int expand(int size)
{
	int out = 0;
	for (int i = 0; i < size;) {
		int n = packed[i++];
		if (n == 0) {
			back[out++] = packed[i++];
			continue;
		}
		int from = out - (packed[i] | packed[i + 1] << 8);
		for (i += 2; n > 0; n--)
			back[out++] = back[from++];
	}
	return out;
}

int main(int argc, char **argv)
{
	generate();
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--)
		sum += expand(compress());
	printf("%ld\n", sum);
}
