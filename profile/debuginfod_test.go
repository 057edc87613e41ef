package profile_test

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/profile"
)

// stripped builds a program with a build id, whose symbols are in another directory. It
// returns the program, that directory and the build id.
func stripped(t *testing.T) (program, debug, id string) {
	t.Helper()
	dir := t.TempDir()
	program, debug = filepath.Join(dir, "prog"), filepath.Join(dir, "debug")
	if err := os.Mkdir(debug, 0o777); err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(dir, "prog.c")
	if err := os.WriteFile(src, []byte("static __attribute__((noinline)) int hidden(int n) { return n * 7; }\nint main(int n, char **v) { return hidden(n); }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"gcc -g -O1 -Wl,--build-id -o prog prog.c", "objcopy --only-keep-debug prog debug/prog.debug", "strip prog"} {
		words := strings.Fields(command)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("%s: %v\n%s", command, err, out)
		}
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	note, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	return program, debug, hex.EncodeToString(note[16:])
}

// hiddenIn looks for the function in the program as a recording has it.
func hiddenIn(t *testing.T, program, id string) (found bool, s profile.Status) {
	t.Helper()
	spaces := profile.NewSpaces()
	spaces.Map(1, profile.Mapping{PID: 7, Start: 0x400000, Len: 0x10000, File: program, BuildID: id})
	spaces.Settle()
	file := spaces.Files()[0]
	y := profile.NewSymbolizer(profile.Config{})
	defer y.Close()
	list, _ := y.Lookup(file, object.Named("hidden"))
	return len(list) == 1, y.Status(file)
}

// TestDebuginfod has a server of elfutils on this machine serve a debug file.
func TestDebuginfod(t *testing.T) {
	for _, tool := range []string{"debuginfod", "debuginfod-find"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s", tool)
		}
	}
	program, debug, id := stripped(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	server := exec.Command("debuginfod", "-p", fmt.Sprint(port), "-d", filepath.Join(t.TempDir(), "db"), "-F", debug)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Process.Kill()
		server.Wait()
	}()
	t.Setenv("DEBUGINFOD_CACHE_PATH", t.TempDir())
	t.Setenv("DEBUGINFOD_URLS", "")
	if found, _ := hiddenIn(t, program, id); found {
		t.Fatal("a stripped program has its symbols")
	}
	t.Setenv("DEBUGINFOD_URLS", fmt.Sprintf("http://127.0.0.1:%d", port))
	found := false
	var s profile.Status
	for range 240 { // it has to look through its directory first
		if found, s = hiddenIn(t, program, id); found {
			break
		}
		// That a file is not there is remembered, too.
		t.Setenv("DEBUGINFOD_CACHE_PATH", t.TempDir())
		time.Sleep(250 * time.Millisecond)
	}
	if !found {
		t.Fatalf("the server's file is not found: %+v", s)
	}
	// Without the program, and without the server, the file is there.
	server.Process.Kill()
	t.Setenv("PATH", t.TempDir())
	if found, s = hiddenIn(t, program, id); !found {
		t.Errorf("what was fetched is not found again: %+v", s)
	}
	t.Setenv("DEBUGINFOD_CACHE_PATH", t.TempDir())
	if found, s = hiddenIn(t, program, id); found || len(s.Notes) == 0 || !strings.Contains(strings.Join(s.Notes, "\n"), "debuginfod-find") {
		t.Errorf("without server and program: %v, notes %q", found, s.Notes)
	}
}
