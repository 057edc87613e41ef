package object

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// benchProgram returns a program to ask about: the one that
// CYCLESTACK_BENCH_BINARY names, or else go itself, a Go program of some 15 MB
// without DWARF.
func benchProgram(b *testing.B) string {
	if path := os.Getenv("CYCLESTACK_BENCH_BINARY"); path != "" {
		return path
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skipf("needs the go command: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "bin", "go")
}

func BenchmarkOpen(b *testing.B) {
	path := benchProgram(b)
	b.ReportAllocs()
	for b.Loop() {
		o, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		o.Symbol(o.code[0].low)
		o.Close()
	}
}

// BenchmarkOpenDebug opens a program up to its first line.
func BenchmarkOpenDebug(b *testing.B) {
	path := benchProgram(b)
	b.ReportAllocs()
	for b.Loop() {
		o, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		o.Line(o.code[0].low)
		o.Close()
	}
}

// benchmarkAddrs asks for a million random addresses of code.
func benchmarkAddrs(b *testing.B, ask func(*Object, uint64)) {
	path := benchProgram(b)
	const n = 1 << 20
	addrs := make([]uint64, n)
	o, err := Open(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	text := o.code[0]
	o.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range addrs {
		addrs[i] = text.low + r.Uint64N(text.high-text.low)
	}
	b.ReportAllocs()
	for b.Loop() {
		o, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, a := range addrs {
			ask(o, a)
		}
		o.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/address")
}

func BenchmarkSymbol(b *testing.B) {
	benchmarkAddrs(b, func(o *Object, a uint64) { o.Symbol(a) })
}

func BenchmarkLine(b *testing.B) {
	benchmarkAddrs(b, func(o *Object, a uint64) { o.Line(a) })
}

func BenchmarkFrames(b *testing.B) {
	benchmarkAddrs(b, func(o *Object, a uint64) { o.Frames(a) })
}
