/* Changes all elements of a matrix, again and again. C keeps a row's elements
 * side by side in memory, so that going down a column steps over a whole row
 * each time.
 *
 * cc -O1 -g -o walk examples/walk/walk.c
 * ./walk columns
 * ./walk rows
 */
#include <string.h>

enum { rows = 1000, columns = 1000, times = 30 };

static int matrix[rows][columns];

static __attribute__((noinline)) void down_columns(void)
{
	for (int j = 0; j < columns; j++)
		for (int i = 0; i < rows; i++)
			matrix[i][j] = 2 * matrix[i][j] + 1;
}

static __attribute__((noinline)) void along_rows(void)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++)
			matrix[i][j] = 2 * matrix[i][j] + 1;
}

int main(int argc, char **argv)
{
	int by_rows = argc > 1 && strcmp(argv[1], "rows") == 0;

	for (int n = 0; n < times; n++)
		if (by_rows)
			along_rows();
		else
			down_columns();
	return matrix[rows - 1][columns - 1] == 1;
}
