package cgroupfs

import (
	"testing"
	"time"
)

// TestParse: texts of a kernel, copied from one.
func TestParse(t *testing.T) {
	c, ok := parseCPU([]byte("usage_usec 8693845157\nuser_usec 8000000000\nsystem_usec 693845157\ncore_sched.force_idle_usec 0\nnr_periods 10\nnr_throttled 3\nthrottled_usec 250000\nnr_bursts 0\nburst_usec 0\n"))
	if want := (CPU{Usage: 8693845157000, User: 8000000000000, System: 693845157000, Throttled: 250000000}); !ok || c != want {
		t.Errorf("%+v %v, want %+v", c, ok, want)
	}
	some, full, ok := parsePressure([]byte("some avg10=93.03 avg60=77.81 avg300=65.55 total=8693845157\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"))
	if !ok || some != 8693845157000 || full != 12000 {
		t.Errorf("some %d, full %d, %v", some, full, ok)
	}
	var v1 CPU
	parseTicks([]byte("user 250\nsystem 13\n"), &v1)
	parseThrottled([]byte("nr_periods 1\nnr_throttled 1\nthrottled_time 77\n"), &v1)
	if v1.User != uint64(2500*time.Millisecond) || v1.System != uint64(130*time.Millisecond) || v1.Throttled != 77 {
		t.Errorf("%+v", v1)
	}
	for _, bad := range []string{"", "usage_usec", "usage_usec x", "usage_usec 99999999999999999999", "usage_usec 18446744073709551615", "some total=1"} {
		if c, ok := parseCPU([]byte(bad)); ok {
			t.Errorf("%q: %+v", bad, c)
		}
	}
}

// FuzzParse: whatever a file has.
func FuzzParse(f *testing.F) {
	f.Add([]byte("usage_usec 8693845157\nuser_usec 8000000000\nsystem_usec 693845157\n"))
	f.Add([]byte("some avg10=93.03 avg60=77.81 avg300=65.55 total=8693845157\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"))
	f.Add([]byte("user 250\nsystem 13\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, ok := parseCPU(text); ok && (c.Usage > 1<<62 || c.User > 1<<62 || c.System > 1<<62) {
			t.Errorf("%+v", c)
		}
		parsePressure(text)
		parseTicks(text, &CPU{})
		parseThrottled(text, &CPU{})
		number(text)
	})
}
