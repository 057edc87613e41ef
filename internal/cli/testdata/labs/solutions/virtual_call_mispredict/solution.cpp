// The objects of a class stand together.
#include "solution.h"

#include <algorithm>
#include <random>
#include <typeindex>

void generateObjects(InstanceArray &array)
{
	std::default_random_engine generator(0);
	std::uniform_int_distribution<std::uint32_t> any(0, 2);
	for (std::size_t i = 0; i < N; i++)
		switch (any(generator)) {
		case 0: array.push_back(std::make_unique<ClassA>()); break;
		case 1: array.push_back(std::make_unique<ClassB>()); break;
		default: array.push_back(std::make_unique<ClassC>());
		}
	std::stable_sort(array.begin(), array.end(), [](const auto &a, const auto &b) {
		const BaseClass &x = *a, &y = *b;
		return std::type_index(typeid(x)) < std::type_index(typeid(y));
	});
}

void invoke(InstanceArray &array, std::size_t &data)
{
	for (const auto &item : array)
		item->handle(data);
}
