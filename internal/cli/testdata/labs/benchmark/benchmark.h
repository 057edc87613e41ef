/* What the laboratories of perf-ninja use of Google Benchmark's interface, with as many rounds
   as LAB_ROUNDS says: a simulation is compared with a run that does the same. */
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace benchmark {

enum TimeUnit { kNanosecond, kMicrosecond, kMillisecond, kSecond };

class State {
	long rounds;

public:
	struct Value {
		~Value() {}
	};
	struct iterator {
		long left;
		bool operator!=(const iterator &) { return left > 0; }
		iterator &operator++() { --left; return *this; }
		Value operator*() const { return {}; }
	};
	State() : rounds(std::getenv("LAB_ROUNDS") ? std::atol(std::getenv("LAB_ROUNDS")) : 1) {}
	iterator begin() { return { rounds }; }
	iterator end() { return { 0 }; }
	int64_t iterations() const { return rounds; }
	int64_t range(int) const { return 0; }
	void SetBytesProcessed(int64_t) {}
};

struct Bench {
	void (*run)(State &);
	Bench *Unit(TimeUnit) { return this; }
	Bench *Iterations(long) { return this; }
	Bench *Name(const std::string &) { return this; }
	Bench *UseRealTime() { return this; }
	Bench *Arg(long) { return this; } // there is one size
};

inline std::vector<Bench *> &benches() { static std::vector<Bench *> list; return list; }
inline Bench *add(void (*run)(State &)) { benches().push_back(new Bench{ run }); return benches().back(); }
template <class T> inline void DoNotOptimize(T &v) { asm volatile("" : : "g"(&v) : "memory"); }
template <class T> inline void DoNotOptimize(T &&v) { asm volatile("" : : "g"(&v) : "memory"); }
inline void ClobberMemory() { asm volatile("" : : : "memory"); }

} // namespace benchmark

#define BENCH_NAMED(line, f) static benchmark::Bench *bench_of_##line = benchmark::add(f)
#define BENCH_AT(line, f) BENCH_NAMED(line, f)
#define BENCHMARK(f) BENCH_AT(__LINE__, f)
#define BENCHMARK_MAIN() \
	int main() \
	{ \
		for (auto *b : benchmark::benches()) { \
			benchmark::State s; \
			b->run(s); \
		} \
	}
