package emulator

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/object"
)

// making executes two functions that it makes, one after the other at the same address. It
// names them in a jitdump, or in a perf map.
const making = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static FILE *dump, *map;

static void put(const void *p, size_t n) { fwrite(p, 1, n, dump); }
static void u32(uint32_t v) { put(&v, 4); }
static void u64(uint64_t v) { put(&v, 8); }
static uint64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void made(unsigned char *at, const unsigned char *code, unsigned size, const char *name, int line) {
	memcpy(at, code, size);
	if (map) {
		fprintf(map, "%lx %x %s\n", (long)at, size, name);
		fflush(map);
		return;
	}
	u32(2); u32(16 + 16 + 16 + 6); u64(now());
	u64((uint64_t)at); u64(1);
	u64((uint64_t)at); u32(line); u32(0); put("/a.js", 6);
	u32(0); u32(16 + 40 + strlen(name) + 1 + size); u64(now());
	u32(getpid()); u32(getpid()); u64((uint64_t)at); u64((uint64_t)at); u64(size); u64(line);
	put(name, strlen(name) + 1); put(code, size);
	fflush(dump);
}

int main(int argc, char **argv) {
	char path[300];
	if (argc > 2) {
		snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
		map = fopen(path, "w");
	} else {
		snprintf(path, sizeof path, "%s/jit-%d.dump", argv[1], (int)getpid());
		dump = fopen(path, "w+");
		u32(0x4a695444); u32(1); u32(40); u32(62); u32(0); u32(getpid()); u64(now()); u64(0);
		fflush(dump);
		if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED) return 1;
	}
	unsigned char *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* mov eax, edi; inc eax; ret, and mov eax, edi; add eax, eax; inc eax; ret */
	static const unsigned char one[] = { 0x89, 0xf8, 0xff, 0xc0, 0xc3 }, two[] = { 0x89, 0xf8, 0x01, 0xc0, 0xff, 0xc0, 0xc3 };
	int (*volatile run)(int) = (int (*)(int))at, x = 0;
	made(at, one, sizeof one, "JS:*first /a.js:1:1", 1);
	for (int i = 0; i < 10000; i++) x = run(x);
	unsigned char *other = argc > 2 ? at + 64 : at;
	made(other, two, sizeof two, "JS:*second /a.js:2:1", 2);
	run = (int (*)(int))other;
	for (int i = 0; i < 20000; i++) x = run(x) & 0xffff;
	printf("%d\n", x);
	return 0;
}
`

// TestMadeCode checks the names of code that a program makes, from a jitdump and from a perf map. In
// the jitdump both functions were at one address.
func TestMadeCode(t *testing.T) {
	if HostTarget() != "x86_64" {
		t.Skip("the program makes code for amd64")
	}
	program := compiled(t, "gcc", making)
	for _, args := range [][]string{{t.TempDir()}, {"-", "map"}} {
		s := emulated(t, append([]string{program}, args...)...)
		defer os.Remove(object.PerfMapName(s.State.Pid()))
		var out bytes.Buffer
		if err := s.Write(&out); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]int{"JS:*first /a.js:1:1": 3 * 10_000, "JS:*second /a.js:2:1": 4 * 20_000} {
			got, in, source, line := costOf(out.String(), name)
			if got != want {
				t.Errorf("%v: %s executed %d instructions, want %d", args, name, got, want)
			}
			if dumped := len(args) == 1; dumped && (filepath.Dir(in) != args[0] || source != "/a.js" || line != want/30_000) || !dumped && in != madeModule {
				t.Errorf("%v: %s is in %s, %s:%d", args, name, in, source, line)
			}
		}
	}
}

var namedLine = regexp.MustCompile(`^(ob|fl|fn)=\((\d+)\)(?: (.*))?$`)

// costOf returns the instructions of a function in a callgrind file, and the place of the last.
func costOf(text, function string) (sum int, object, source string, line int) {
	names, at := map[string]string{}, map[string]string{}
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if m := namedLine.FindStringSubmatch(l); m != nil {
			if m[3] != "" {
				names[m[1]+m[2]] = m[3]
			}
			at[m[1]] = names[m[1]+m[2]]
			continue
		}
		f := strings.Fields(l)
		if at["fn"] != function || len(f) < 3 || !strings.HasPrefix(f[0], "0x") {
			continue
		}
		n, _ := strconv.Atoi(f[2])
		sum += n
		object, source = at["ob"], at["fl"]
		_, _ = fmt.Sscan(f[1], &line)
	}
	return sum, object, source, line
}
