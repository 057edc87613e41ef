// C++ with exceptions: stacks within the unwinder of the language itself.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

static volatile long total;

struct Guard {
	~Guard()
	{
		for (int i = 0; i < 500; i++)
			total += i;
	}
};

__attribute__((noinline)) static void thrower(int depth)
{
	Guard guard;
	if (depth == 0)
		throw std::runtime_error("deep");
	thrower(depth - 1);
	total++;
}

__attribute__((noinline)) static long words()
{
	std::map<std::string, int> all;
	for (int i = 0; i < 4000; i++)
		all[std::to_string(i * 7919 % 4000)] += i;
	return all.size();
}

int main()
{
	std::vector<double> list(40000);
	for (int k = 0; k < 10; k++) {
		for (int i = 0; i < 50; i++) {
			try {
				thrower(30);
			} catch (const std::exception &e) {
				total += e.what()[0];
			}
		}
		total += words();
		for (auto &x : list)
			x = rand();
		std::sort(list.begin(), list.end());
	}
}
