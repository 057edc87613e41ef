// Twelve bytes instead of forty.
#include <vector>

constexpr int N = 1000000;
constexpr int minRandom = 0;
constexpr int maxRandom = 100;

struct S {
	float d;
	short l;
	short s;
	unsigned char i;
	bool b;

	bool operator<(const S &other) const { return i < other.i; }
};

void init(std::vector<S> &arr);
S create_entry(int first_value, int second_value);
void solution(std::vector<S> &arr);
