// A picture of bytes: edges, medians, an even histogram, turned, and its parts counted.
#include "programs.h"

enum { W = 320, H = 240 };
static unsigned char picture[H][W], edged[H][W], clean[H][W], even[H][W], turned[H][W];
static int label[H * W], parent[H * W];

FUNCTION void edges(unsigned char to[H][W], unsigned char a[H][W])
{
	for (int y = 1; y < H - 1; y++)
		for (int x = 1; x < W - 1; x++) {
			int dx = a[y - 1][x + 1] + 2 * a[y][x + 1] + a[y + 1][x + 1] - a[y - 1][x - 1] - 2 * a[y][x - 1] - a[y + 1][x - 1];
			int dy = a[y + 1][x - 1] + 2 * a[y + 1][x] + a[y + 1][x + 1] - a[y - 1][x - 1] - 2 * a[y - 1][x] - a[y - 1][x + 1];
			int sum = abs(dx) + abs(dy);
			to[y][x] = sum > 255 ? 255 : sum;
		}
}

FUNCTION void medians(unsigned char to[H][W], unsigned char a[H][W])
{
	for (int y = 1; y < H - 1; y++)
		for (int x = 1; x < W - 1; x++) {
			unsigned char list[9];
			int n = 0;
			for (int v = -1; v <= 1; v++)
				for (int u = -1; u <= 1; u++, n++) {
					unsigned char c = a[y + v][x + u];
					int i = n;
					for (; i > 0 && list[i - 1] > c; i--)
						list[i] = list[i - 1];
					list[i] = c;
				}
			to[y][x] = list[4];
		}
}

FUNCTION void equalize(unsigned char to[H][W], unsigned char a[H][W])
{
	int count[256] = {0}, sum = 0;
	unsigned char level[256];
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			count[a[y][x]]++;
	for (int i = 0; i < 256; i++) {
		sum += count[i];
		level[i] = 255l * sum / (W * H);
	}
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			to[y][x] = level[a[y][x]];
}

FUNCTION void turn(unsigned char to[H][W], unsigned char a[H][W], int cosine, int sine) // in 1/4096
{
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			int u = cosine * (x - W / 2) - sine * (y - H / 2) + W / 2 * 4096, v = sine * (x - W / 2) + cosine * (y - H / 2) + H / 2 * 4096;
			int i = u >> 12, j = v >> 12, p = u & 4095, q = v & 4095;
			if (i < 0 || j < 0 || i >= W - 1 || j >= H - 1) {
				to[y][x] = 0;
				continue;
			}
			int above = a[j][i] * (4096 - p) + a[j][i + 1] * p, below = a[j + 1][i] * (4096 - p) + a[j + 1][i + 1] * p;
			to[y][x] = ((above >> 12) * (4096 - q) + (below >> 12) * q) >> 12;
		}
}

static int top(int i)
{
	while (parent[i] != i)
		i = parent[i] = parent[parent[i]];
	return i;
}

FUNCTION int parts(unsigned char a[H][W])
{
	int n = 0, sum = 0;
	for (int i = 0; i < W * H; i++) {
		unsigned char *p = &a[0][0] + i;
		if (*p < 128) {
			label[i] = -1;
			continue;
		}
		int left = i % W ? label[i - 1] : -1, above = i >= W ? label[i - W] : -1;
		if (left < 0 && above < 0)
			parent[n] = n, label[i] = n++;
		else if (left < 0 || above < 0)
			label[i] = left < 0 ? above : left;
		else {
			int one = top(left), other = top(above);
			parent[one > other ? one : other] = label[i] = one < other ? one : other;
		}
	}
	for (int i = 0; i < n; i++)
		sum += parent[i] == i;
	return sum;
}

FUNCTION long total(unsigned char a[H][W])
{
	long sum = 0;
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			sum += a[y][x];
	return sum;
}

int main(int argc, char **argv)
{
	long sum = 0;
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			picture[y][x] = (x * x / 64 + y * y / 32 + x * y / 96) % 160 + any() % 64;
	for (int r = rounds(argc, argv); r > 0; r--) {
		medians(clean, picture);
		for (int i = 0; i < 4; i++) {
			equalize(even, i % 2 ? picture : clean);
			sum += total(even);
		}
		for (int i = 0; i < 5; i++) {
			edges(edged, i % 2 ? even : clean);
			sum += total(edged);
		}
		for (int i = 0; i < 4; i++)
			turn(turned, clean, 3956 - r % 7, 1060 + i);
		sum += parts(turned) + parts(edged);
		picture[r % H][r % W]++;
	}
	printf("%ld\n", sum);
}
