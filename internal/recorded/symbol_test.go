package recorded

import "testing"

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
