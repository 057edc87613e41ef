// The innermost loop walks rows.
#include "solution.h"
#include <memory>
#include <utility>

void zero(Matrix &m)
{
	for (auto &row : m)
		row.fill(0);
}

void identity(Matrix &m)
{
	zero(m);
	for (int i = 0; i < N; i++)
		m[i][i] = 1;
}

void multiply(Matrix &product, const Matrix &a, const Matrix &b)
{
	zero(product);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			for (int j = 0; j < N; j++)
				product[i][j] += a[i][k] * b[k][j];
}

Matrix power(const Matrix &base, const uint32_t exponent)
{
	auto product = std::make_unique<Matrix>(), square = std::make_unique<Matrix>(base), next = std::make_unique<Matrix>();
	identity(*product);
	for (uint32_t left = exponent; left; left /= 2) {
		if (left % 2) {
			multiply(*next, *product, *square);
			std::swap(next, product);
			if (left == 1)
				break;
		}
		multiply(*next, *square, *square);
		std::swap(next, square);
	}
	return *product;
}
