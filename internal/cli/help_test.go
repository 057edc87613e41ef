package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFits checks that help texts fit 80 columns, all of them.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	lines := 0
	names := []string{"help", "version", "completion", "completion bash", "completion zsh", "completion fish", "completion powershell"}
	for _, c := range (&app{}).commands() {
		names = append(names, c.name)
	}
	for _, name := range append(names, "") {
		for line := range strings.Lines(runMain(t, append(strings.Fields(name), "--help")...)) {
			line = strings.TrimRight(line, "\n")
			lines++
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
	if lines < 400 {
		t.Errorf("%d lines", lines)
	}
}

// TestNoSuchHelp refuses help about, and completion for, what does not exist.
func TestNoSuchHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help", "foo"}, {"help", "stat", "foo"}, {"completion", "tcsh"}, {"version", "extra"}} {
		var out, msg bytes.Buffer
		if status := Main(context.Background(), args, strings.NewReader(""), &out, &msg); status != exitUsage || out.Len() > 0 || strings.Count(msg.String(), "\n") != 1 {
			t.Errorf("%v: exit status %d, %q, %q", args, status, out.String(), msg.String())
		}
	}
}

// TestCompletion completes the values of flags, and nodes.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"stat", "--by", ""}, "comm"},
		{[]string{"stat", "--source", ""}, "simulated"},
		{[]string{"report", "--by", ""}, "instruction"},
		{[]string{"report", "--cpu", "skylakex", "--nodes", "DRAM"}, "DRAM_Bound"},
		{[]string{"explain", "--cpu", "power7", "LSU_STALL"}, "LSU_STALL_CPI"},
		{[]string{"stat", "--cpu", "power"}, "power7"},
		{[]string{"stat", "--model", "smt"}, "smt-occupancy"},
	} {
		words := strings.Fields(runMain(t, append([]string{"__complete"}, tt.args...)...))
		found := false
		for _, w := range words {
			found = found || w == tt.want
		}
		if !found {
			t.Errorf("%v completes to %v, without %s", tt.args, words, tt.want)
		}
	}
}
