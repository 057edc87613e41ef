/* Programs that mostly write: ./stores MODE ROUNDS. The array is beyond the second-level
   cache of any processor. */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 2048
static int a[N * N];

__attribute__((noinline)) static void by_rows(void) {
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			a[j * N + i] *= 2;
}

__attribute__((noinline)) static void by_columns(void) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[j * N + i] *= 2;
}

__attribute__((noinline)) static void store_columns(int k) {
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[j * N + i] = k;
}

__attribute__((noinline)) static void histogram(void) {
	uint32_t x = 1;
	for (int i = 0; i < N * N; i++) {
		x = x * 1664525 + 1013904223;
		a[x >> 10]++;
	}
}

__attribute__((noinline)) static void histogram_small(void) {
	uint32_t x = 1;
	for (int i = 0; i < N * N; i++) {
		x = x * 1664525 + 1013904223;
		a[x >> 22]++;
	}
}

__attribute__((noinline)) static void add(int k) {
	for (int i = 0; i < N * N; i++)
		a[i] += k;
}

__attribute__((noinline)) static void fill(int k) { memset(a, k, sizeof a); }

__attribute__((noinline)) static void stream(int k) {
	__m128i v = _mm_set1_epi32(k);
	for (int i = 0; i < N * N; i += 4)
		_mm_stream_si128((__m128i *)&a[i], v);
}

int main(int argc, char **argv) {
	int rounds = argc > 2 ? atoi(argv[2]) : 1;
	const char *mode = argc > 1 ? argv[1] : "";
	for (int k = 0; k < rounds; k++) {
		if (!strcmp(mode, "rows")) by_rows();
		else if (!strcmp(mode, "columns")) by_columns();
		else if (!strcmp(mode, "store-columns")) store_columns(k);
		else if (!strcmp(mode, "histogram")) histogram();
		else if (!strcmp(mode, "histogram-small")) histogram_small();
		else if (!strcmp(mode, "add")) add(k);
		else if (!strcmp(mode, "memset")) fill(k);
		else if (!strcmp(mode, "stream")) stream(k);
		else return 2;
	}
	printf("%d\n", a[N * N / 3]);
	return 0;
}
