package doctor

import (
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	text := strings.Repeat("seven77 ", 20)
	for _, line := range fold(text, 60) {
		if len(line) > 60 || strings.TrimSpace(line) != line {
			t.Errorf("line %q", line)
		}
	}
	if got := strings.Join(fold(text, 60), " "); got != strings.TrimSpace(text) {
		t.Errorf("words were lost: %q", got)
	}
}
