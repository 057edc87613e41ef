package recorded

import (
	"os"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/profile"
)

func TestParseSymbol(t *testing.T) {
	tests := []struct {
		text string
		want symbol
	}{
		{"", symbol{}},
		{"main", symbol{name: "main"}},
		{"std::sort<int>", symbol{name: "std::sort<int>"}},
		{"main.(*T).f", symbol{name: "main.(*T).f"}},
		{"prog:main", symbol{module: "prog", name: "main"}},
		{"libx.so.1:std::sort", symbol{module: "libx.so.1", name: "std::sort"}},
		{"[kernel.kallsyms]:schedule", symbol{module: "[kernel.kallsyms]", name: "schedule"}},
		{"0x1136", symbol{name: "0x1136", address: true, from: 0x1136}},
		{"prog:0x1136-0x1160", symbol{module: "prog", name: "0x1136-0x1160", address: true, from: 0x1136, to: 0x1160}},
		{"src/a.c:12", symbol{name: "src/a.c:12", file: "src/a.c", line: 12}},
		{"prog:", symbol{name: "prog:"}},
		{":", symbol{name: ":"}},
		{"a.c:0", symbol{module: "a.c", name: "0"}},
	}
	for _, test := range tests {
		test.want.text = test.text
		got, err := parseSymbol(test.text)
		if err != nil || *got != test.want {
			t.Errorf("%q: got %+v, %v, want %+v", test.text, got, err, test.want)
		}
	}
	for _, text := range []string{"0x", "0xg", "prog:0x1-", "0x5-0x5", "0x5-0x4", "0x11111111111111111"} {
		if got, err := parseSymbol(text); err == nil {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

// TestMeansEvent: --event may leave out modifiers, and does not care for case.
func TestMeansEvent(t *testing.T) {
	for _, test := range []struct {
		user, event string
		want        bool
	}{
		{"cycles", "cycles", true}, {"cycles", "cycles:pp", true}, {"cycles:pp", "cycles:pp", true}, {"CYCLES", "cycles:u", true},
		{"cycles:u", "cycles", false}, {"cycle", "cycles", false}, {"cycles", "cycles-ct", false},
	} {
		if got := meansEvent(test.user, test.event); got != test.want {
			t.Errorf("meansEvent(%q, %q) = %v", test.user, test.event, got)
		}
	}
}

// TestSeveral: functions of one name are listed with their modules, or by their addresses.
func TestSeveral(t *testing.T) {
	f := func(file, name string, addr uint64) *profile.Function {
		return &profile.Function{File: &profile.File{Name: file}, Name: name, Addr: addr}
	}
	a, b, c := f("/bin/a", "main", 16), f("/lib/b.so", "main", 32), f("/bin/a", "main", 48)
	for _, test := range []struct {
		symbol string
		of     *profile.Function
		want   bool
	}{
		{"main", a, true}, {"a:main", a, true}, {"/bin/a:main", a, true}, {"b.so:main", a, false}, {"mai", a, false}, {"main", f("", "main", 1), false},
		{"read", f("/lib/c.so", "read@@GLIBC_2.2.5", 1), true}, {"read", f("/bin/a", "read@plt", 1), false}, {"read@@GLIBC_2.2.5", f("/lib/c.so", "read@@GLIBC_2.2.5", 1), true},
	} {
		s, err := parseSymbol(test.symbol)
		if err != nil {
			t.Fatal(err)
		}
		way := newMeanings(s).way(test.of)
		if got := s.inModule(counts.Name(test.of.File.Base())) && (way == 0 || way == 1); got != test.want {
			t.Errorf("%s names %s: %t", test.symbol, test.of.File.Name, got)
		}
	}
	if !sameCode(a, f("/usr/bin/a", "main", 16)) || sameCode(a, c) || sameCode(a, b) {
		t.Error("sameCode")
	}
	s := &symbol{text: "main", name: "main"}
	d, e := f("/bin/a", "domain", 80), f("/lib/b.so", "main_loop", 96)
	for want, list := range map[string][]*profile.Function{
		"main is the name of several functions with samples, such as a:main, b.so:main":                   {a, b},
		"main is the name of several functions with samples, such as a:0x10, b.so:main, a:0x30":           {a, b, d, c},
		"main is a part of the names of several functions with samples, such as a:domain, b.so:main_loop": {d, e},
	} {
		met, y := newMeanings(s), profile.NewSymbolizer(profile.Config{})
		several := false
		for _, f := range append(list, list...) {
			several = met.several(f, y)
		}
		if got := met.error().Error(); got != want || !several {
			t.Errorf("%s, %t, want %s", got, several, want)
		}
	}
}

// TestStricter: a name may mean several functions and one more strictly. Then it is not ambiguous. The
// program is this test.
func TestStricter(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	y := profile.NewSymbolizer(profile.Config{})
	defer y.Close()
	file := &profile.File{Name: exe}
	for _, test := range []struct {
		symbol string
		found  []string
		want   bool
	}{
		{"nosuch", []string{"a.nosuchOne", "a.nosuchTwo"}, true},
		{"a.nosuch", []string{"a.nosuchOne", "a.nosuchTwo"}, true},
		{"a.nosuch", []string{"x/a.nosuch", "y/a.nosuch"}, true},
		{"a.nosuch", []string{"x/a.nosuch", "y/a.nosuchTwo"}, false},
		{"a.nosuch", []string{"a.nosuch", "y/a.nosuch"}, false},
		{"NOSUCH", []string{"a.nosuchOne", "a.nosuchTwo"}, true},
		{"STRING", []string{"a.stringOne", "a.stringTwo"}, true},
		{"recorded.parseSymbol", []string{"a/recorded.parseSymbolOne", "a/recorded.parseSymbolTwo"}, false},
		{"recorded.parseSymbol", []string{"a/recorded.parseSymbol", "b/recorded.parseSymbol"}, true},
		{"runtime.mallocgc", []string{"a/runtime.mallocgc", "b/runtime.mallocgc"}, false},
		{"parseSYMBOL", []string{"a.parseSymbolOne", "a.parseSymbolTwo"}, true},
		{"ParseSymbol", []string{"a.parseSymbolOne", "a.parseSymbolTwo"}, false}, // TestParseSymbol
		{"String", []string{"a.stringOne", "a.stringTwo"}, false},
		{"os:nosuch", []string{"a.nosuchOne", "a.nosuchTwo"}, false},
	} {
		s, err := parseSymbol(test.symbol)
		if err != nil {
			t.Fatal(err)
		}
		met, got := newMeanings(s), false
		for i, name := range test.found {
			got = met.several(&profile.Function{File: file, Name: name, Addr: uint64(i)}, y)
		}
		if got != test.want {
			t.Errorf("%s of %q: several %t", test.symbol, test.found, got)
		}
	}
}

// TestPackage: the last part of a Go package's path is enough, also if the name is a part of another one. A
// function of exactly the name wins.
func TestPackage(t *testing.T) {
	table := func(names ...string) *counts.Table {
		l := &counts.Layout{Columns: []counts.Column{{Event: "cycles"}}, Scopes: []counts.Scope{counts.RunScope("")}}
		for i, name := range names {
			l.Scopes = append(l.Scopes, counts.Scope{Kind: counts.Function, Code: &counts.Code{Module: "prog", Function: name, Addr: uint64(i + 1)}})
		}
		return counts.NewTable(l)
	}
	for _, test := range []struct{ symbol, want string }{
		{"order.(*List).add", "example.org/a/order.(*List).add"}, {"a/order.(*List).add", "example.org/a/order.(*List).add"},
		{"sort.Sort", "sort.Sort"}, {"y/sort.Sort", "example.org/y/sort.Sort"}, {"der.(*List).add", ""},
	} {
		s, err := parseSymbol(test.symbol)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.find(table("example.org/a/order.(*List).addSome", "example.org/a/order.(*List).add", "example.org/y/sort.Sort", "sort.Sort"), 0)
		if (err == nil) != (test.want != "") || err == nil && got.Function != test.want {
			t.Errorf("%s: %+v, %v", test.symbol, got, err)
		}
	}
	long := strings.Repeat("long/", 20)
	if a, b := shortened(long+"a"), shortened(long+"b"); a == b || len(a) >= len(long) {
		t.Errorf("%s and %s", a, b)
	}
}
