// Every item is stored, and the next one replaces it if it is not wanted.
#include "solution.h"

std::size_t select(std::array<S, N> &output, const std::array<S, N> &input, const std::uint32_t lower, const std::uint32_t upper)
{
	std::size_t n = 0;
	for (const auto &item : input) {
		output[n] = item;
		n += item.first - lower <= upper - lower;
	}
	return n;
}
