package plan

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/model"
)

func TestReadDriversRefuses(t *testing.T) {
	const head = "[[driver]]\ncpus = [\"x\"]\n"
	for _, tt := range []struct{ in, want string }{
		{"[[driver]]\nsource = \"s\"\n", "the processors are missing"},
		{head + "coutner = \"16-19\"\n", `line 3: there is no key "driver.coutner"`},
		{head + "counter = \"19-16\"\n", "not bits"},
		{head + "counter = \"64\"\n", "not bits"},
		{head + "counter = \"0-63\"\n", "not bits"},
		{head + "counter = \"\u00b2\"\n", "not bits"},
		{head + "exempt = \"x\"\n", "not the number"},
		{head + "narrow = [{ counters = \"\" }]\n", "not the number"},
		{head + "agree = [{ name = \"a\", bits = \"\" }]\n", "not bits"},
		{head + "agree = [{ bits = \"1\" }]\n", "a name of their own"},
		{head + "agree = [{ name = \"ldlat\", bits = \"1\" }]\n", "a name of their own"},
		{head + "bank = { counter = 4 }\n", "codes can name"},
		{head + "counter = \"16-17\"\nbank = { counter = 4 }\n", "codes can name"},
		{head + "refuse = [{ only = [[1]] }]\n", "not a mask and a value"},
		{head + "refuse = [{ except = [[1, 2]] }]\n", "not a mask and a value"},
		{head + "refuse = [{ only = [[-1, 1]] }]\n", "line 3"},
	} {
		if _, err := readDrivers([]byte(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("readDrivers(%q): error %v, want one with %q", tt.in, err, tt.want)
		}
	}
}

func FuzzReadDrivers(f *testing.F) {
	f.Add(linuxFile, uint64(0x16880))
	f.Add([]byte("[[driver]]\ncpus = [\"x\"]\ncounter = \"16-19\"\nbank = { counter = 4, only = [[0xf000, 0x6000]] }\n"), uint64(0x26880))
	f.Add([]byte("[[driver]]\ncpus = [\"x\"]\nexempt = \"5-6\"\nagree = [{ name = \"a\", bits = \"0-62\" }]\nrefuse = [{ why = \"w\" }]\n"), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, code uint64) {
		drivers, err := readDrivers(data)
		if err != nil {
			return
		}
		for i := range drivers {
			d := &drivers[i]
			if leader := d.leader(code); leader != 0 && d.leader(leader) != 0 && d.Bank.applies(leader) {
				t.Errorf("%#x needs %#x, and that %#x", code, leader, d.leader(leader))
			}
			demand := demand{can: 0xff}
			if err := d.restrict(&demand, code); err == nil && demand.can == 0 {
				t.Errorf("%#x has no counter", code)
			}
		}
	})
}

// TestDrivers checks that every entry of the list is that of some processor, and
// says where it stands in Linux.
func TestDrivers(t *testing.T) {
	drivers, err := embeddedDrivers()
	if err != nil {
		t.Fatal(err)
	}
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, cpu := range cat.CPUs() {
		d, err := driverOf(cpu)
		if err != nil {
			t.Fatal(err)
		}
		used[strings.Join(d.CPUs, " ")] = true
		if cpu.Layout == "power" && d.Counter == "" {
			t.Errorf("%s: nothing is known of Linux's driver", cpu.Name)
		}
	}
	for i := range drivers {
		if !used[strings.Join(drivers[i].CPUs, " ")] {
			t.Errorf("no processor has the driver of %v", drivers[i].CPUs)
		}
		if !strings.Contains(drivers[i].Source, "arch/") {
			t.Errorf("the driver of %v has no source", drivers[i].CPUs)
		}
	}
}

func TestField(t *testing.T) {
	for _, tt := range []struct {
		bits         string
		code, value  uint64
		other, coded uint64
	}{
		{"16-19", 0x46880, 4, 1, 0x16880},
		{"9", 0x200, 1, 0, 0},
		{"40-44", 0x1f0000000001, 0x1f, 2, 0x20000000001},
		{"1-63", 3, 1, 5, 11},
	} {
		f, err := parseField(tt.bits)
		if err != nil {
			t.Errorf("parseField(%q): %v", tt.bits, err)
			continue
		}
		if got := f.of(tt.code); got != tt.value {
			t.Errorf("bits %s of %#x are %#x, want %#x", tt.bits, tt.code, got, tt.value)
		}
		if got := f.with(tt.code, tt.other); got != tt.coded {
			t.Errorf("%#x with %#x in bits %s is %#x, want %#x", tt.code, tt.other, tt.bits, got, tt.coded)
		}
	}
}
