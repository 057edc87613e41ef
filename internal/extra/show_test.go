//go:build linux

package extra_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/extra"
)

// TestShow: a picture becomes a PNG, or is shown by a terminal that says it can. Others get
// one line, and no codes.
func TestShow(t *testing.T) {
	t.Parallel()
	svg, err := filepath.Abs("../../docs/pictures/tree.svg")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tree.png")
	var out, msg bytes.Buffer
	if status := extra.Main(t.Context(), []string{"show", "--scale", "2", "-o", file, svg}, strings.NewReader(""), &out, &msg); status != 0 || out.Len() > 0 {
		t.Fatalf("status %d: %s", status, msg.String())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || c.Width != 2000 {
		t.Errorf("%v: %+v", err, c)
	}
	for _, tt := range []struct {
		env    []string
		args   []string
		answer string // of the terminal, asked for its attributes
		want   string
		status int
	}{
		{nil, nil, "", "-o FILE writes a PNG", 4},
		{nil, nil, "\x1b[?62;22c", "-o FILE writes a PNG", 4},
		{nil, nil, "\x1b[?62;4;22c", "\x1bP0;1q", 0},
		{[]string{"KITTY_WINDOW_ID=1"}, nil, "", "\x1b_Gf=100,a=T", 0},
		{nil, []string{"--format", "sixel"}, "", "\x1bP0;1q", 0},
		{nil, []string{"--format", "png"}, "", "a PNG is not for terminals", 2},
	} {
		p := inTerminal(t, 24, 80, append([]string{"KITTY_WINDOW_ID="}, tt.env...), append([]string{"show", svg}, tt.args...)...)
		if tt.answer != "" {
			p.wait(0, "\x1b[c")
			p.press(tt.answer)
		}
		p.wait(0, tt.want)
		<-p.done
		if got := p.cmd.ProcessState.ExitCode(); got != tt.status {
			t.Errorf("%v %v: status %d, want %d", tt.args, tt.env, got, tt.status)
		}
		if tt.status != 0 && (strings.Contains(p.output(), "\x1bP") || strings.Contains(p.output(), "\x1b_G")) {
			t.Errorf("%v: a picture that nobody asked for", tt.args)
		}
	}
}
