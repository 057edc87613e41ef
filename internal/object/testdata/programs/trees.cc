#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace trees {

template <typename T> class Node {
public:
	explicit Node(T v) : value(v) {}
	void insert(T v)
	{
		auto &side = v < value ? left : right;
		if (side)
			side->insert(v);
		else
			side = std::make_unique<Node>(v);
	}
	template <typename F> void walk(F f) const
	{
		if (left)
			left->walk(f);
		f(value);
		if (right)
			right->walk(f);
	}

private:
	T value;
	std::unique_ptr<Node> left, right;
};

struct Empty : std::runtime_error {
	using std::runtime_error::runtime_error;
};

int median(std::vector<int> v)
{
	if (v.empty())
		throw Empty("nothing");
	std::sort(v.begin(), v.end());
	return v[v.size() / 2];
}

} // namespace trees

int main(int argc, char **argv)
{
	trees::Node<int> root(50);
	unsigned seed = argc;
	for (int i = 0; i < 1000; i++) {
		seed = seed * 1103515245 + 12345;
		root.insert(seed >> 16 & 1023);
	}
	std::map<std::string, int> counts;
	std::vector<int> all;
	root.walk([&](int v) {
		counts[std::to_string(v % 10)]++;
		all.push_back(v);
	});
	try {
		std::cout << trees::median(all) << " " << trees::median({}) << "\n";
	} catch (const trees::Empty &e) {
		std::cout << e.what() << " " << counts.size() << "\n";
	}
}
