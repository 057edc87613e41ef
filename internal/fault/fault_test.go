package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
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
