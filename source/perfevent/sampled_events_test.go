package perfevent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/source/perfevent"
)

// describeGroups prints groups of events with how often they take samples.
func describeGroups(groups [][]perfevent.Event) string {
	var list []string
	for _, g := range groups {
		var events []string
		for _, e := range g {
			text := fmt.Sprintf("%s %d", e.Name, e.Attr.Sample)
			if e.Attr.Freq {
				text += " Hz"
			}
			if e.Attr.Precise > 0 {
				text += fmt.Sprintf(" precise %d", e.Attr.Precise)
			}
			if e.Attr.ExcludeKernel {
				text += " -kernel"
			}
			if e.Attr.SampleType != 0 {
				text += " of memory"
			}
			events = append(events, text)
		}
		list = append(list, strings.Join(events, ", "))
	}
	return strings.Join(list, " | ")
}

func TestResolveSampled(t *testing.T) {
	sys := system(t, tree(t, "skylakex"))
	for _, tt := range []struct{ list, want string }{
		{"cycles", "cycles 99 Hz"},
		{"cycles, instructions:u", "cycles 99 Hz | instructions:u 99 Hz -kernel"},
		{"{cycles,instructions}", "cycles 99 Hz, instructions 99 Hz"},
		{"{cycles,instructions}:S", "cycles 99 Hz, instructions 0"},
		{"{cycles,instructions/period=1000/}:Su", "cycles 0 -kernel, instructions/period=1000/ 1000 -kernel"},
		{"{cycles}:S", "cycles 99 Hz"},
		{"cycles/period=2000003/", "cycles/period=2000003/ 2000003"},
		{"cycles/period=0x10/u", "cycles/period=0x10/u 16 -kernel"},
		{"cpu/event=0x3c,name=CPU_CLK_UNHALTED.THREAD,period=2000003/,{cpu/event=0x9c,umask=0x1,freq=7/,r1c0}:S",
			"CPU_CLK_UNHALTED.THREAD 2000003 | cpu/event=0x9c,umask=0x1,freq=7/ 7 Hz, r1c0 0"},
		{"cpu/event=0xcd,umask=0x1,ldlat=0x4,name='a,b'/pp", "a,b 99 Hz precise 2 of memory"},
		{"cpu/mem-loads,ldlat=30/", "cpu/mem-loads,ldlat=30/ 99 Hz precise 2 of memory"},
		{"cycles:P", "cycles:P 99 Hz precise 3"},
	} {
		groups, err := sys.ResolveSampled(tt.list, 99, true)
		if got := describeGroups(groups); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.list, got, err, tt.want)
		}
	}
	groups, err := sys.ResolveSampled("cycles,instructions/freq=5/", 1000, false)
	if got, want := describeGroups(groups), "cycles 1000 | instructions/freq=5/ 5 Hz"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestResolveSampledErrors(t *testing.T) {
	sys := system(t, tree(t, "skylakex"))
	for list, want := range map[string]string{
		"":                                 `event "": an event between two commas, or none at all, is missing`,
		"cycles,":                          "between two commas",
		"{cycles":                          "its braces do not match",
		"cycles}":                          "its braces do not match",
		"{{cycles}}":                       "its braces do not match",
		"{cycles}S":                        "its braces do not match",
		"{}":                               "an event between two commas, or none at all, is missing",
		"cpu/event=1":                      "its terms do not end in a slash",
		"cycles/period=x/":                 `event "cycles/period=x/": period=x: it is a number above 0`,
		"cycles/freq=0/":                   "freq=0: it is a number above 0",
		"cycles/period/":                   "period=: it is a number above 0",
		"nosuch":                           `event "nosuch": the kernel has no event of this name here`,
		"{cycles,nosuch}:S":                `event "nosuch"`,
		"{cycles,instructions}:Z":          `event "cycles": 'Z' is not a modifier`,
		strings.Repeat("x", 1<<17):         "a list longer than 65536 bytes",
		strings.Repeat("r1,", 2000) + "r1": "2001 events: at most 1024",
	} {
		groups, err := sys.ResolveSampled(list, 1, false)
		if e := (*perfevent.EventError)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, %v, want %q", list, groups, err, want)
		}
	}
}

func FuzzResolveSampled(f *testing.F) {
	sys := system(f, tree(f, "skylakex"))
	for _, seed := range []string{"cycles", "{cycles,instructions/period=3/u}:S,cpu/event=1,name='a/b,c'/", "{", "//", "a/b/c/d/", "{x}:", "cycles/freq=1,period=2/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		groups, err := sys.ResolveSampled(list, 1, false)
		if e := (*perfevent.EventError)(nil); err != nil && !errors.As(err, &e) {
			t.Errorf("%v is of another type", err)
		}
		for _, g := range groups {
			samples := 0
			for _, e := range g {
				if e.Attr.Sample > 0 {
					samples++
				}
			}
			if samples == 0 || samples != 1 && samples != len(g) {
				t.Errorf("%d of %d events take samples", samples, len(g))
			}
		}
	})
}
