package profile

import (
	"errors"
	"strings"
	"testing"
)

func TestPerfMap(t *testing.T) {
	const text = `7f0010 20 Lcom/example/A;::run()V
0x7f0000 0x10 LazyCompile:~start native:1
7f0010 8 rewritten
7f0014 8 over the end of it
not a line

7f0100 0 without size
7f01`
	table, odd, err := readPerfMap(strings.NewReader(text))
	if err != nil || odd != 3 {
		t.Fatalf("got %d odd lines, %v", odd, err)
	}
	for addr, want := range map[uint64]string{
		0x7effff: "",
		0x7f0000: "LazyCompile:~start native:1",
		0x7f000f: "LazyCompile:~start native:1",
		0x7f0010: "rewritten",
		0x7f0013: "rewritten",
		0x7f0014: "over the end of it",
		0x7f001c: "",
		0x7f0100: "without size",
	} {
		s, ok := table.find(addr)
		if !ok {
			s.Name = ""
		}
		if s.Name != want {
			t.Errorf("%#x: got %q, want %q", addr, s.Name, want)
		}
	}
}

const kallsymsText = `0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000100 t helper
ffffffff81000200 T __pi_memcpy
ffffffff81000200 T memcpy
ffffffff81000200 W memmove_weak
ffffffff81000300 D jiffies
ffffffffc0000000 t ext4_fill	[ext4]
ffffffffc0000100 t ext4_read	[ext4]
`

func TestKallsyms(t *testing.T) {
	table, err := readKallsyms(strings.NewReader(kallsymsText))
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint64]string{
		0xffffffff80ffffff: "",
		0xffffffff81000000: "_stext",
		0xffffffff81000120: "helper",
		0xffffffff81000200: "memcpy",
		0xffffffffc0000010: "ext4_fill",
		0xffffffffc0000110: "ext4_read",
		0xffffffffc0002000: "", // far behind the last
	} {
		s, ok := table.find(addr)
		if !ok {
			s.Name = ""
		}
		if s.Name != want {
			t.Errorf("%#x: got %q, want %q", addr, s.Name, want)
		}
	}
	if table.marks["_text"] != 0xffffffff81000000 {
		t.Errorf("_text is at %#x", table.marks["_text"])
	}
	if _, err := readKallsyms(strings.NewReader("0000000000000000 T _text\n0000000000000000 T _stext\n")); !errors.Is(err, errHidden) {
		t.Errorf("hidden addresses: %v", err)
	}
	if _, err := readKallsyms(strings.NewReader("ffffffff81000000 T _text\n<html>\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("no symbols: %v", err)
	}
}

func FuzzLists(f *testing.F) {
	f.Add([]byte(kallsymsText))
	f.Add([]byte("7f0010 20 a b\n7f0014 8 c\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		maps, _, err := readPerfMap(strings.NewReader(string(b)))
		if err == nil {
			checkTable(t, maps)
		}
		kernel, err := readKallsyms(strings.NewReader(string(b)))
		if err == nil {
			checkTable(t, kernel)
		}
	})
}

func checkTable(t *testing.T, table *nameTable) {
	t.Helper()
	for i := range table.ranges {
		s := table.symbol(i)
		if got, ok := table.find(s.Addr); !ok || got != s {
			t.Fatalf("%+v is not found at its address: %+v", s, got)
		}
		if i > 0 {
			if before := table.symbol(i - 1); before.Addr >= s.Addr || before.Addr+before.Size > s.Addr {
				t.Fatalf("%+v overlaps with %+v", before, s)
			}
		}
	}
}
