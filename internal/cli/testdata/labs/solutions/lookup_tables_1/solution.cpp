// A table instead of comparisons.
#include "solution.hpp"
#include <cstdint>

std::array<std::size_t, NUM_BUCKETS> histogram(const std::vector<int> &values)
{
	std::array<std::uint8_t, 100> bucket{};
	int v = 0, number = 0;
	for (int bound : { 13, 29, 41, 53, 71, 83, 100 }) {
		for (; v < bound; v++)
			bucket[v] = number;
		number++;
	}
	std::array<std::size_t, NUM_BUCKETS> counts{};
	for (unsigned value : values)
		counts[value < bucket.size() ? bucket[value] : DEFAULT_BUCKET]++;
	return counts;
}
