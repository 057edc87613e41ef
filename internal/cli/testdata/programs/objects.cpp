// C++ that allocates: maps of strings, vectors of objects with virtual functions.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
extern "C" {
#include "programs.h"
}

struct Shape { virtual ~Shape() {} virtual double area() const = 0; };
struct Square : Shape { double a; Square(double a) : a(a) {} double area() const override { return a * a; } };
struct Circle : Shape { double r; Circle(double r) : r(r) {} double area() const override { return 3.14159 * r * r; } };
struct Named : Shape { std::string name; Named(std::string n) : name(std::move(n)) {} double area() const override { return name.size(); } };

FUNCTION double shapes()
{
	std::vector<std::unique_ptr<Shape>> list;
	for (int i = 0; i < 20000; i++)
		switch (any() % 3) {
		case 0: list.push_back(std::make_unique<Square>(i)); break;
		case 1: list.push_back(std::make_unique<Circle>(i)); break;
		default: list.push_back(std::make_unique<Named>("the shape with the number " + std::to_string(i)));
		}
	double sum = 0;
	for (int k = 0; k < 5; k++)
		for (auto &s : list)
			sum += s->area();
	return sum;
}

FUNCTION size_t words()
{
	std::map<std::string, int> count;
	for (int i = 0; i < 20000; i++)
		count["word " + std::to_string(any() % 3000)]++;
	return count.size();
}

FUNCTION size_t graph()
{
	std::unordered_map<int, std::vector<int>> next;
	for (int i = 0; i < 30000; i++)
		next[any() % 4000].push_back(any() % 4000);
	size_t sum = 0;
	for (auto &n : next) {
		std::sort(n.second.begin(), n.second.end());
		sum += n.second.front();
	}
	return sum;
}

int main(int argc, char **argv)
{
	double sum = 0;
	for (int r = rounds(argc, argv); r > 0; r--)
		sum += shapes() + words() + graph();
	printf("%g\n", sum);
}
