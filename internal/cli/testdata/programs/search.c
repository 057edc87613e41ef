// String search: Horspool, byte by byte, and words that are compared.
#include "programs.h"

enum { SIZE = 1 << 18, WORDS = 1 << 13 };
static unsigned char text[SIZE + 1];
static char word[WORDS][16];

FUNCTION int horspool(const char *what)
{
	int n = strlen(what), skip[256], found = 0;
	for (int i = 0; i < 256; i++)
		skip[i] = n;
	for (int i = 0; i < n - 1; i++)
		skip[(unsigned char)what[i]] = n - 1 - i;
	for (int at = 0; at + n <= SIZE; at += skip[text[at + n - 1]]) {
		int i = n - 1;
		while (i >= 0 && text[at + i] == (unsigned char)what[i])
			i--;
		found += i < 0;
	}
	return found;
}

FUNCTION int naive(const char *what)
{
	int found = 0;
	for (int at = 0; at < SIZE; at++) {
		int i = 0;
		while (what[i] && text[at + i] == (unsigned char)what[i])
			i++;
		found += !what[i];
	}
	return found;
}

FUNCTION int bisect(const char *what)
{
	int low = 0, high = WORDS;
	while (low < high) {
		int middle = (low + high) / 2;
		if (strcmp(word[middle], what) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < SIZE; i++)
		text[i] = 'a' + any() % 6;
	for (int i = 0; i < WORDS; i++)
		sprintf(word[i], "word%06d", 7 * i);
	long sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		sum += horspool("abcabd") + horspool("fedcbafedcba") + naive("bad") + naive("face");
		for (int i = 0; i < 8000; i++) {
			char what[16];
			memcpy(what, word[any() % WORDS], sizeof what);
			sum += bisect(what);
		}
	}
	printf("%ld\n", sum);
}
