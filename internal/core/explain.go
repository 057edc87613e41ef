package core

import (
	"io"

	"github.com/cyclestack/cyclestack/internal/simulation"
)

// Explain writes what the models of some cores are, their limits, and where their figures
// come from.
func Explain(w io.Writer, cores []*simulation.Core) error {
	for i, c := range cores {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, c.Explain()); err != nil {
			return err
		}
	}
	return nil
}
