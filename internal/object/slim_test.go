package object

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
)

// slimPrograms have compressed debug information of one or several units.
var slimPrograms = []program{
	{"c-dwarf5-compressed", "gcc -gdwarf-5 -gz -O2 -o {out} shapes.c -lm", "", false},
	{"c-dwarf5-relative-compressed", "gcc -gdwarf-5 -gz -O2 -o {out} ../programs/shapes.c -lm", "", false},
	{"c++-compressed", "g++ -gdwarf-5 -gz -O1 -ffunction-sections -Wl,--gc-sections -o {out} trees.cc", "", false},
}

// TestSlim compares lines that were read without .debug_info with those of all debug information.
func TestSlim(t *testing.T) {
	paths := map[string]string{}
	for _, p := range slimPrograms {
		t.Run(p.name, func(t *testing.T) { paths[p.name] = p.build(t) })
	}
	const library = "/lib/x86_64-linux-gnu/libm.so.6"
	if _, err := os.Stat(library); err == nil {
		paths["libm"] = library
	}
	for name, path := range paths {
		options := Options{Debug: []string{"/usr/lib/debug"}}
		slim, all := open(t, path, options), open(t, path, options)
		all.debugInfo()
		text := slim.main.Section(".text")
		lines := 0
		for addr := text.Addr; addr < text.Addr+text.Size; addr += uint64(testlong.Size(7, 1)) {
			file, line := slim.Line(addr)
			wantFile, wantLine := all.Line(addr)
			if file != wantFile || line != wantLine {
				t.Fatalf("%s: %#x is %s:%d, want %s:%d", name, addr, file, line, wantFile, wantLine)
			}
			if file != "" {
				lines++
			}
		}
		if name != "libm" && (slim.dwarf != nil || lines == 0) { // the library may have no debug file here
			t.Errorf("%s: all debug information was read, for %d lines", name, lines)
		}
	}
}

// TestSlimOrder has the addresses of units in another order than their line programs: then all
// debug information is read.
func TestSlimOrder(t *testing.T) {
	path := slimPrograms[0].build(t)
	o, want := open(t, path, Options{}), open(t, path, Options{})
	want.debugInfo()
	info := o.lineInfo()
	at := info.ranges[0].low
	other := &unit{entry: info.units[0].entry} // its line program begins elsewhere
	info.ranges = []unitRange{{span{at, at + 1}, other}}
	other.lines = &lineTable{rows: []lineRow{{addr: at + 1}}, files: []string{"other.c"}}
	file, line := o.Line(at)
	if wantFile, wantLine := want.Line(at); file != wantFile || line != wantLine || o.dwarf == nil {
		t.Errorf("%s:%d, want %s:%d", file, line, wantFile, wantLine)
	}
}

// FuzzSlim reads damaged line programs and lists of addresses.
func FuzzSlim(f *testing.F) {
	o := open(f, slimPrograms[0].build(f), Options{})
	var part [3][]byte
	for i, name := range []string{".debug_line", ".debug_line_str", ".debug_aranges"} {
		data, err := o.main.contents(name)
		if err != nil {
			f.Fatal(err)
		}
		part[i] = data
	}
	f.Add(part[0], part[1], part[2])
	f.Fuzz(func(t *testing.T, line, text, addresses []byte) {
		if n := len(linePrograms(line, text, binary.LittleEndian)); n*26 > len(line) {
			t.Errorf("%d units of %d bytes", n, len(line))
		}
		for _, list := range addressLists(addresses, binary.LittleEndian) {
			for _, s := range list {
				if s.low >= s.high {
					t.Fatalf("%#x to %#x", s.low, s.high)
				}
			}
		}
	})
}
