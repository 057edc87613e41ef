//go:build linux

package perfevent_test

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/source/perfevent"
)

// probed is a program whose main thread goes on after another one has ended: 40 and 20 calls of spot.
const probed = `#include <pthread.h>
#include <unistd.h>
__attribute__((noinline)) void spot(int n) { for (volatile int i = 0; i < n; i++) ; }
static void calls(int n) { while (n-- > 0) { spot(20000); usleep(50); } }
static void *other(void *x) { calls(20); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, other, 0); calls(40); pthread_join(t, 0); return 0; }
`

// TestUprobes demands a count and a sample of each call, in all threads and in processes that the command starts.
func TestUprobes(t *testing.T) {
	const list = "/sys/kernel/tracing/uprobe_events"
	write := func(line string) error {
		f, err := os.OpenFile(list, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString(line + "\n")
		return err
	}
	dir := t.TempDir()
	source, program := filepath.Join(dir, "probed.c"), filepath.Join(dir, "probed")
	if err := os.WriteFile(source, []byte(probed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O1", "-pthread", "-o", program, source).CombinedOutput(); err != nil {
		t.Skipf("gcc: %v: %s", err, out)
	}
	name := fmt.Sprintf("cyclestack_test_%d", os.Getpid())
	if err := write(fmt.Sprintf("p:%s/spot %s:%#x", name, program, offsetOf(t, program, "spot"))); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := write("-:" + name + "/spot"); err != nil {
			t.Error(err)
		}
	})
	sys := machine(t)
	for range 4 {
		for command, want := range map[string]int{program: 60, program + " & " + program + "; wait": 120} {
			target := perfevent.Target{Command: []string{"/bin/sh", "-c", command}}
			table, _ := one(t, sys, perfevent.Spec{Groups: [][]perfevent.Event{events(t, sys, name+":spot")}, Target: target})
			if got := column(t, table, 0, name+":spot").Value; got != float64(want) {
				t.Errorf("%s: %v calls, want %d", command, got, want)
			}
			f := drain(t, sample(t, sys, perfevent.SampleSpec{Groups: sampled(t, sys, name+":spot/period=1/"), Target: target}))
			if got := f.samples[0]; got != want {
				t.Errorf("%s: %d samples, want %d", command, got, want)
			}
		}
	}
}

// offsetOf returns where a function is in a file.
func offsetOf(t *testing.T, program, function string) uint64 {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		for _, p := range f.Progs {
			if s.Name == function && p.Type == elf.PT_LOAD && s.Value-p.Vaddr < p.Memsz {
				return s.Value - p.Vaddr + p.Off
			}
		}
	}
	t.Fatalf("%s has no %s", program, function)
	return 0
}
