// Eight searches at a time walk the second list together.
#include "solution.hpp"

unsigned getSumOfDigits(unsigned n)
{
	unsigned sum = 0;
	for (; n; n /= 10)
		sum += n % 10;
	return sum;
}

unsigned solution(List *l1, List *l2)
{
	enum { SEARCHES = 8 };
	unsigned sum = 0;
	while (l1) {
		unsigned wanted[SEARCHES], left = 0;
		for (; l1 && left < SEARCHES; l1 = l1->next)
			wanted[left++] = l1->value;
		for (List *at = l2; at && left; at = at->next)
			for (unsigned i = 0; i < left; i++)
				if (wanted[i] == at->value) {
					sum += getSumOfDigits(wanted[i]);
					wanted[i] = wanted[--left];
					break;
				}
	}
	return sum;
}
