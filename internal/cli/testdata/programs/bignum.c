// Large numbers: powers in a field of a thousand bits, common divisors, decimal digits.
#include "programs.h"

enum { WORDS = 32 };

FUNCTION void multiply(uint32_t *to, const uint32_t *a, const uint32_t *b)
{
	memset(to, 0, 2 * WORDS * sizeof *to);
	for (int i = 0; i < WORDS; i++) {
		uint64_t carry = 0;
		for (int j = 0; j < WORDS; j++) {
			carry += (uint64_t)a[i] * b[j] + to[i + j];
			to[i + j] = carry;
			carry >>= 32;
		}
		to[i + WORDS] = carry;
	}
}

FUNCTION void square(uint32_t *to, const uint32_t *a)
{
	uint64_t low = 0, high = 0; // a column's sum
	for (int k = 0; k < 2 * WORDS - 1; k++) {
		for (int i = k < WORDS ? 0 : k - WORDS + 1; i <= k && i < WORDS; i++) {
			uint64_t p = (uint64_t)a[i] * a[k - i];
			low += (uint32_t)p, high += p >> 32;
		}
		to[k] = low;
		low = (low >> 32) + high;
		high = 0;
	}
	to[2 * WORDS - 1] = low;
}

// remainder leaves in the first words of n, of twice as many, n modulo m, whose first
// bit is set: Knuth's algorithm D.
FUNCTION void remainder_(uint32_t *n, const uint32_t *m)
{
	uint32_t top = 0;
	for (int j = WORDS; j >= 0; j--) {
		uint64_t head = (uint64_t)(j == WORDS ? top : n[j + WORDS]) << 32 | n[j + WORDS - 1];
		uint64_t q = head / m[WORDS - 1], rest = head % m[WORDS - 1];
		while (q >> 32 || q * m[WORDS - 2] > (rest << 32 | n[j + WORDS - 2])) {
			q--;
			if ((rest += m[WORDS - 1]) >> 32)
				break;
		}
		uint64_t borrow = 0, carry = 0;
		for (int i = 0; i < WORDS; i++) {
			carry += q * m[i];
			uint64_t d = (uint64_t)n[i + j] - (uint32_t)carry - borrow;
			n[i + j] = d;
			borrow = d >> 63;
			carry >>= 32;
		}
		uint32_t *last = j == WORDS ? &top : &n[j + WORDS];
		uint64_t d = (uint64_t)*last - carry - borrow;
		*last = d;
		if (d >> 63) {
			carry = 0;
			for (int i = 0; i < WORDS; i++) {
				carry += (uint64_t)n[i + j] + m[i];
				n[i + j] = carry;
				carry >>= 32;
			}
			*last += carry;
		}
	}
}

FUNCTION void power(uint32_t *to, const uint32_t *base, uint32_t exponent, const uint32_t *m)
{
	uint32_t product[2 * WORDS];
	memset(to, 0, WORDS * sizeof *to);
	to[0] = 1;
	for (int bit = 31; bit >= 0; bit--) {
		square(product, to);
		remainder_(product, m);
		memcpy(to, product, WORDS * sizeof *to);
		if (exponent >> bit & 1) {
			multiply(product, to, base);
			remainder_(product, m);
			memcpy(to, product, WORDS * sizeof *to);
		}
	}
}

FUNCTION int decimal(char *to, const uint32_t *a)
{
	uint32_t n[WORDS];
	int digits = 0;
	memcpy(n, a, sizeof n);
	for (int words = WORDS; words > 0;) {
		uint64_t rest = 0;
		for (int i = words - 1; i >= 0; i--) {
			rest = rest << 32 | n[i];
			n[i] = rest / 1000000000;
			rest %= 1000000000;
		}
		for (int i = 0; i < 9; i++, rest /= 10)
			to[digits++] = '0' + rest % 10;
		while (words > 0 && !n[words - 1])
			words--;
	}
	return digits;
}

FUNCTION int divisor(uint32_t *a, uint32_t *b, int steps) // the binary algorithm
{
	for (int k = 0; k < steps; k++) {
		int i = WORDS - 1;
		while (i > 0 && a[i] == b[i])
			i--;
		if (a[i] < b[i]) {
			uint32_t *t = a;
			a = b, b = t;
		}
		int64_t d = 0;
		for (i = 0; i < WORDS; i++) {
			d += (int64_t)a[i] - b[i];
			a[i] = d;
			d >>= 32;
		}
		while (!(a[0] & 1) && a[0]) {
			for (i = 0; i < WORDS - 1; i++)
				a[i] = a[i] >> 1 | a[i + 1] << 31;
			a[i] >>= 1;
		}
	}
	return a[0] ^ b[0];
}

int main(int argc, char **argv)
{
	uint32_t m[WORDS], base[WORDS], result[WORDS], other[WORDS];
	char digits[WORDS * 10 + 9];
	long sum = 0;
	for (int i = 0; i < WORDS; i++)
		m[i] = any(), base[i] = any();
	m[WORDS - 1] |= 1u << 31, m[0] |= 1;
	base[WORDS - 1] &= ~0u >> 1;
	for (int r = rounds(argc, argv); r > 0; r--) {
		power(result, base, 0xb5c3a96d ^ r, m);
		sum += result[r % WORDS];
		for (int i = 0; i < 4; i++)
			sum += decimal(digits, result) + digits[r % 300];
		memcpy(other, m, sizeof m);
		result[0] |= 1;
		sum += divisor(result, other, 280);
	}
	printf("%ld\n", sum);
}
