// Puzzles by trying: sudokus with sets of digits, queens, and exact cover by lists that
// are unlinked and linked again.
#include "programs.h"

static uint16_t rows[9], columns[9], squares[9];
static unsigned char cells[81], ones[512];

FUNCTION int choose(int *free_) // the cell with the fewest digits left
{
	int best = -1, fewest = 10;
	for (int i = 0; i < 81; i++) {
		if (cells[i])
			continue;
		int r = i / 9, c = i % 9, left = rows[r] & columns[c] & squares[r / 3 * 3 + c / 3];
		if (ones[left] < fewest) {
			fewest = ones[left], best = i, *free_ = left;
			if (fewest <= 1)
				break;
		}
	}
	return best;
}

static inline void put(int i, int digit)
{
	int r = i / 9, c = i % 9;
	cells[i] ^= digit;
	rows[r] ^= 1 << (digit - 1), columns[c] ^= 1 << (digit - 1), squares[r / 3 * 3 + c / 3] ^= 1 << (digit - 1);
}

FUNCTION int solve(int budget) // solutions, up to two
{
	int left = 0, i = choose(&left), found = 0;
	if (i < 0)
		return 1;
	for (; left && found < budget; left &= left - 1) {
		int digit = __builtin_ctz(left) + 1;
		put(i, digit);
		found += solve(budget - found);
		put(i, digit);
	}
	return found;
}

FUNCTION void set(const char *puzzle, int turn)
{
	memset(cells, 0, sizeof cells);
	for (int i = 0; i < 9; i++)
		rows[i] = columns[i] = squares[i] = 511;
	for (int i = 0; i < 81; i++)
		if (puzzle[i] != '.')
			put(turn & 1 ? i % 9 * 9 + i / 9 : i, (puzzle[i] - '1' + turn) % 9 + 1);
}

FUNCTION long queens(const int *taken, int row, int n) // square by square, without bits
{
	if (row == n)
		return 1;
	int now[16];
	long sum = 0;
	for (int k = 0; k < row; k++)
		now[k] = taken[k];
	for (int c = 0; c < n; c++) {
		int k = 0;
		while (k < row && now[k] != c && now[k] - c != row - k && c - now[k] != row - k)
			k++;
		if (k == row) {
			now[row] = c;
			sum += queens(now, row + 1, n);
		}
	}
	return sum;
}

// A board of four by six, to be covered with pieces of three squares.
enum { WIDE = 6, HIGH = 4, ITEMS = WIDE * HIGH };
struct node { struct node *left, *right, *up, *down, *head; int count; };
static struct node items[ITEMS + 1], nodes[2000];
static int used;

FUNCTION void cover(struct node *item)
{
	item->left->right = item->right, item->right->left = item->left;
	for (struct node *row = item->down; row != item; row = row->down)
		for (struct node *n = row->right; n != row; n = n->right) {
			n->up->down = n->down, n->down->up = n->up;
			n->head->count--;
		}
}

FUNCTION void uncover(struct node *item)
{
	for (struct node *row = item->up; row != item; row = row->up)
		for (struct node *n = row->left; n != row; n = n->left) {
			n->up->down = n->down->up = n;
			n->head->count++;
		}
	item->left->right = item->right->left = item;
}

FUNCTION long tilings(int pieces)
{
	struct node *root = &items[ITEMS], *item = root->right;
	if (item == root)
		return 1;
	if (pieces == 0)
		return 0;
	for (struct node *i = item->right; i != root; i = i->right)
		if (i->count < item->count)
			item = i;
	long sum = 0;
	cover(item);
	for (struct node *row = item->down; row != item; row = row->down) {
		for (struct node *n = row->right; n != row; n = n->right)
			cover(n->head);
		sum += tilings(pieces - 1);
		for (struct node *n = row->left; n != row; n = n->left)
			uncover(n->head);
	}
	uncover(item);
	return sum;
}

static void piece(int x, int y, const int *dx, const int *dy, int squares_)
{
	for (int k = 0; k < squares_; k++)
		if (x + dx[k] < 0 || x + dx[k] >= WIDE || y + dy[k] >= HIGH)
			return;
	struct node *first = &nodes[used];
	for (int k = 0; k < squares_; k++) {
		struct node *n = &nodes[used++], *item = &items[(y + dy[k]) * WIDE + x + dx[k]];
		n->head = item, n->down = item, n->up = item->up;
		item->up->down = n, item->up = n, item->count++;
		n->left = k ? n - 1 : first + squares_ - 1;
		n->right = k < squares_ - 1 ? n + 1 : first;
	}
}

FUNCTION void board(void)
{
	static const int shapes[][2][3] = {
		{{0, 1, 2}, {0, 0, 0}}, {{0, 0, 0}, {0, 1, 2}}, {{0, 1, 0}, {0, 0, 1}},
		{{0, 1, 1}, {0, 0, 1}}, {{0, 0, 1}, {0, 1, 1}}, {{0, 0, -1}, {0, 1, 1}},
	};
	used = 0;
	for (int i = 0; i <= ITEMS; i++)
		items[i] = (struct node){&items[i ? i - 1 : ITEMS], &items[i < ITEMS ? i + 1 : 0], &items[i], &items[i], NULL, 0};
	for (int y = 0; y < HIGH; y++)
		for (int x = 0; x < WIDE; x++)
			for (int s = 0; s < 6; s++)
				piece(x, y, shapes[s][0], shapes[s][1], 3);
}

int main(int argc, char **argv)
{
	static const char *puzzles[] = {
		"53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79",
		"8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..",
	};
	long sum = 0;
	for (int i = 1; i < 512; i++)
		ones[i] = ones[i >> 1] + (i & 1);
	for (int r = rounds(argc, argv); r > 0; r--) {
		for (int i = 0; i < 2; i++) {
			set(puzzles[i], r);
			sum += solve(2);
		}
		sum += queens(NULL, 0, 9);
		board();
		sum += tilings(ITEMS / 3) + tilings(ITEMS / 3 - 1);
	}
	printf("%ld\n", sum);
}
