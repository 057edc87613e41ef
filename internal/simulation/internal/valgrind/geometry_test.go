package valgrind

import (
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"
)

func TestFit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ have, want Cache }{
		{Cache{32 << 10, 8, 64}, Cache{32 << 10, 8, 64}},
		{Cache{48 << 10, 12, 64}, Cache{48 << 10, 12, 64}},     // 64 sets
		{Cache{36 << 20, 12, 64}, Cache{36 << 20, 18, 64}},     // 49152 sets: 32768 with more ways
		{Cache{2560 << 10, 20, 64}, Cache{2560 << 10, 20, 64}}, // 2048 sets
		{Cache{335544320, 16, 64}, Cache{335544320, 20, 64}},   // of a server
		{Cache{3 * 64, 3, 64}, Cache{3 * 64, 3, 64}},           // one set
		{Cache{100 << 10, 7, 64}, Cache{96 << 10, 12, 64}},     // 228 sets: 128
	} {
		got, err := tt.have.Fit()
		if err != nil || got != tt.want {
			t.Errorf("%v fits as %+v, %v; want %+v", tt.have, got, err, tt.want)
		}
		if sets := got.Size / got.Line / got.Ways; sets&(sets-1) != 0 {
			t.Errorf("%v has %d sets", got, sets)
		}
	}
	for _, bad := range []Cache{{}, {32 << 10, 0, 64}, {32 << 10, 8, 60}, {32 << 10, 8, 8}, {64, 8, 64}, {1 << 40, 8, 64}, {32 << 10, 1 << 20, 64}, {-1, 8, 64}} {
		if got, err := bad.Fit(); err == nil {
			t.Errorf("%+v fits as %+v", bad, got)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	h, err := ParseHierarchy("32K,8,64/48K,12,64/2M,16,64/36M,12,64")
	if want := "L1I 32 KiB 8-way, L1D 48 KiB 12-way, L2 2 MiB 16-way, L3 36 MiB 18-way"; err != nil || h.String() != want {
		t.Errorf("%v, %v; want %s", h, err, want)
	}
	h, err = ParseHierarchy("32768,8,64/32768,8,64/1048576,16,64")
	if want := "L1I 32 KiB 8-way, L1D 32 KiB 8-way, L2 1 MiB 16-way"; err != nil || h.String() != want {
		t.Errorf("%v, %v; want %s", h, err, want)
	}
	for _, bad := range []string{"", "32K", "32K,8,64", "32K,8,64/32K,8,64", "a,8,64/32K,8,64/1M,8,64", "32K,8/32K,8,64/1M,8,64",
		"32K,x,64/32K,8,64/1M,8,64", "32K,8,64/32K,8,64/1M,8,64/1M,8,64/1M,8,64", "9999M,8,64/32K,8,64/1M,8,64", "-1,8,64/1,1,1/1,1,1"} {
		if h, err := ParseHierarchy(bad); err == nil {
			t.Errorf("%q is %v", bad, h)
		}
	}
}

// sysfs has the caches of a processor as Linux shows them.
func sysfs(caches ...[5]string) fstest.MapFS {
	root := fstest.MapFS{}
	for i, c := range caches {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu0/cache/index%d/", i)
		for k, name := range []string{"level", "type", "size", "ways_of_associativity", "coherency_line_size"} {
			root[dir+name] = &fstest.MapFile{Data: []byte(c[k] + "\n")}
		}
	}
	return root
}

func TestHostCaches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		caches [][5]string
		want   string
	}{
		{"three levels", [][5]string{{"1", "Data", "32K", "8", "64"}, {"1", "Instruction", "64K", "4", "64"}, {"2", "Unified", "1024K", "8", "64"}, {"3", "Unified", "32768K", "16", "64"}},
			"L1I 64 KiB 4-way, L1D 32 KiB 8-way, L2 1 MiB 8-way, L3 32 MiB 16-way"},
		{"two levels, one of them for both", [][5]string{{"1", "Unified", "16K", "4", "32"}, {"2", "Unified", "512K", "8", "32"}},
			"L1I 16 KiB 4-way, L1D 16 KiB 4-way, L2 512 KiB 8-way"},
	} {
		if h, err := HostCaches(sysfs(tt.caches...)); err != nil || h.String() != tt.want {
			t.Errorf("%s: %v, %v; want %s", tt.name, h, err, tt.want)
		}
	}
	for name, caches := range map[string][][5]string{
		"nothing":       nil,
		"one level":     {{"1", "Data", "32K", "8", "64"}},
		"without sizes": {{"1", "Data", "", "8", "64"}, {"2", "Unified", "x", "8", "64"}},
	} {
		if h, err := HostCaches(sysfs(caches...)); !errors.Is(err, ErrNoCaches) {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
}

// TestFor checks which two of three levels are simulated.
func TestFor(t *testing.T) {
	t.Parallel()
	h, err := ParseHierarchy("32K,8,64/32K,8,64/1M,8,64/32M,16,64")
	if err != nil {
		t.Fatal(err)
	}
	two := h
	two.L3 = Cache{}
	for _, tt := range []struct {
		h        Hierarchy
		resident int64
		last     Cache
		beyond   float64
	}{
		{h, 16 << 20, h.L2, 1},
		{h, 32 << 20, h.L2, 1},
		{h, 33 << 20, h.L3, 0},
		{h, 0, h.L2, 1},
		{two, 16 << 20, h.L2, 0},
	} {
		if g, beyond := tt.h.For(tt.resident); g.LL != tt.last || beyond != tt.beyond || g.D1 != h.L1D {
			t.Errorf("%v with %d bytes: %v, %v", tt.h, tt.resident, g, beyond)
		}
	}
	if d := Takes(2 * time.Second); d < time.Minute || d > 5*time.Minute {
		t.Errorf("2 s take %v", d)
	}
}
