package account

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Measured says which parameters of a method were taken from a file of measured ones.
type Measured struct {
	File   string             `json:"file"`
	Stored bool               `json:"stored,omitempty"`   // by calibrate, for the very processor: the user did not name the file
	CPU    string             `json:"cpu,omitempty"`      // identification of the processor measured on; "" if the file does not say
	When   string             `json:"measured,omitempty"` // as the file has it; "" if it does not
	Params map[string]float64 `json:"params"`
	Own    []string           `json:"own,omitempty"` // parameters that can be measured and are not in the file
}

// String is all of it in one line.
func (m *Measured) String() string {
	text := "penalties: " + strings.Join(slices.Sorted(maps.Keys(m.Params)), ", ") + " from " + m.File
	switch {
	case m.CPU != "" && m.When != "":
		text += fmt.Sprintf(" (measured on %s, %s)", m.CPU, m.When)
	case m.CPU != "":
		text += fmt.Sprintf(" (measured on %s)", m.CPU)
	}
	if len(m.Own) > 0 {
		text += "; not measured, but the models' own: " + strings.Join(m.Own, ", ")
	}
	return text
}
