// Templates, inlining and exceptions.
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace app {
template <typename T> T mix(T x) { return x * 2862933555777941757ULL + 3037000493ULL; }

struct Table {
	std::map<std::string, int> counts;
	void add(const std::string &key) { counts[key]++; }
	int at(const std::string &key) const {
		auto it = counts.find(key);
		if (it == counts.end())
			throw std::out_of_range(key);
		return it->second;
	}
};
} // namespace app

int main() {
	unsigned long long x = 1;
	std::vector<unsigned long long> v;
	app::Table table;
	for (int i = 0; i < 2000; i++) {
		x = app::mix(x);
		v.push_back(x >> 40);
		table.add(std::to_string(v.back() % 100));
	}
	std::sort(v.begin(), v.end(), [](auto a, auto b) { return a % 1000 < b % 1000; });
	int missing = 0;
	for (int i = 0; i < 120; i++) {
		try {
			table.at(std::to_string(i));
		} catch (const std::out_of_range &) {
			missing++;
		}
	}
	std::printf("%d %llu\n", missing, v[7]);
}
