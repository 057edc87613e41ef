// The carries are added at the end.
#include "solution.hpp"

uint16_t checksum(const Blob &blob)
{
	uint32_t sum = 0;
	for (auto value : blob)
		sum += value;
	sum = (sum >> 16) + (sum & 0xffff);
	return sum + (sum >> 16);
}
