package cli

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outOf runs a command, which must succeed, and returns what it says.
func outOf(t *testing.T, args ...string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	if code := Main(t.Context(), args, strings.NewReader(""), &out, &stderr); code != 0 {
		t.Fatalf("%q exits %d: %s", args, code, &stderr)
	}
	return strings.Join(strings.Fields(out.String()), " ") + stderr.String()
}

// A recording that is damaged behind some samples is read up to there, and every command
// says so.
func TestDamagedRecording(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "source", "perfdata", "testdata", "plain.data"))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	at := le.Uint64(b[40:])
	end := at + le.Uint64(b[48:])
	for samples := 0; at < end; at += uint64(le.Uint16(b[at+6:])) {
		if le.Uint32(b[at:]) == 9 {
			if samples++; samples == 3 {
				le.PutUint16(b[at+6:], 0)
				break
			}
		}
	}
	file := filepath.Join(t.TempDir(), "damaged.data")
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"report", "-v", file},
		{"report", "-v", "--by", "function", file},
		{"annotate", "--asm-only", file},
		{"report", "--format", "collapsed", file},
		{"report", "--format", "speedscope", file},
		{"diff", "--notes", "--by", "module", file, file},
	} {
		if got := outOf(t, args...); !strings.Contains(got, "the file is damaged at 0x") || !strings.Contains(got, " bytes (") {
			t.Errorf("%q does not say what was not read:\n%s", args, got)
		}
	}
	for _, args := range [][]string{{"report", file}, {"report", "--by", "function", file}} { // one screen has the number of notes
		if got := outOf(t, args...); !strings.Contains(got, ", one says what was not read (--notes)") {
			t.Errorf("%q does not say that something was not read:\n%s", args, got)
		}
	}
}

// Lines that were inlined into several functions are annotated in each of them, by what
// they cost there.
func TestAnnotateInlined(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "inlined.callgrind")
	text := "# callgrind format\nevents: Ir\nob=app\nfl=app.c\nfn=one\n4 600\n5 19\nfn=three\n4 1800\n6 59\n"
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for function, want := range map[string]string{"one": "619 Ir", "three": "1859 Ir"} {
		if got := outOf(t, "annotate", file, function); !strings.Contains(got, want) {
			t.Errorf("%s does not have %s:\n%s", function, want, got)
		}
	}
	if got := outOf(t, "report", "--by", "line", file); !strings.Contains(got, "* app.c:4 app") || !strings.Contains(got, "app.c:6 three") {
		t.Errorf("lines:\n%s", got)
	}
}
