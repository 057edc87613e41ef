package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/fault"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestAs(t *testing.T) {
	input := fault.Inputf("x.csv: %w", fs.ErrNotExist)
	for _, c := range []struct {
		err  error
		want fault.Kind
	}{
		{nil, 0},
		{errors.New("plain"), 0},
		{fault.As(fault.Machine, errors.New("plain")), fault.Machine},
		{fault.As(fault.Machine, fmt.Errorf("again: %w", input)), fault.Input},
		{fault.As(fault.Usage, nil), 0},
	} {
		if got := fault.Of(c.err); got != c.want {
			t.Errorf("%v: kind %d, want %d", c.err, got, c.want)
		}
	}
	if !errors.Is(input, fs.ErrNotExist) || input.Error() != "x.csv: file does not exist" {
		t.Errorf("got %q, which must wrap its cause", input)
	}
}

func TestSpell(t *testing.T) {
	long := func(n fault.Name) string { return "--" + string(n) }
	cause := fault.Errorf("%s is for %s: %w", fault.Name("same"), fault.Name("hex"), fs.ErrNotExist)
	for _, err := range []error{cause, fault.As(fault.Input, cause), fault.Usagef("x: %w", cause), fault.Optionf("loop", "3", "%w", cause)} {
		got := fault.Spell("core: "+err.Error(), err, long)
		if want := "core: " + strings.Replace(err.Error(), "same is for hex", "--same is for --hex", 1); got != want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := fault.Spell("plain", errors.New("plain"), long); got != "plain" {
		t.Errorf("got %q", got)
	}
}
