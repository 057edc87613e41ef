// Correlations of the columns of a table, which are walked down: a kernel as in PolyBench.
#include "programs.h"
#include <math.h>

enum { ROWS = 260, COLUMNS = 240 };
static double data[ROWS][COLUMNS], table[ROWS][COLUMNS], result[COLUMNS][COLUMNS];

FUNCTION void centre(void)
{
	for (int j = 0; j < COLUMNS; j++) {
		double mean = 0, square = 0;
		for (int i = 0; i < ROWS; i++)
			mean += data[i][j];
		mean /= ROWS;
		for (int i = 0; i < ROWS; i++)
			square += (data[i][j] - mean) * (data[i][j] - mean);
		double width = sqrt(square) + 0.1;
		for (int i = 0; i < ROWS; i++)
			table[i][j] = (data[i][j] - mean) / width;
	}
}

FUNCTION void correlate(void)
{
	for (int i = 0; i < COLUMNS; i++)
		for (int j = i; j < COLUMNS; j++) {
			double sum = 0;
			for (int k = 0; k < ROWS; k++)
				sum += table[k][i] * table[k][j];
			result[i][j] = result[j][i] = sum;
		}
}

int main(int argc, char **argv)
{
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			data[i][j] = any() % 1000 / 1000.0;
	for (int r = rounds(argc, argv); r > 0; r--) {
		centre();
		correlate();
	}
	printf("%g\n", result[3][4]);
}
