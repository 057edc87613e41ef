package pipeline

// A Trust says how well a core's figures of an instruction are known.
type Trust uint8

// The grades of trust.
const (
	Unknown      Trust = iota // no instruction that the decoder knows
	ClassDefault              // those of most instructions, or of another core
	Imported                  // published for its class
	Measured                  // of its class, on a processor with this core
)

var trustNames = [...]string{"unknown", "class default", "imported", "measured"}

func (t Trust) String() string { return trustNames[t] }

// Trust returns how well the figures of an op are known.
func (c *Core) Trust(op *Op) Trust {
	if op.unknown {
		return Unknown
	}
	return c.trust[op.Class]
}

// Divides says whether an op is a division or a square root.
func (o *Op) Divides() bool {
	return o.Class >= Div8 && o.Class <= IDiv64 || o.Class >= FDivS && o.Class <= FSqrtD || o.Class == FPStackDiv
}

// Addr returns the address of the instruction.
func (o *Op) Addr() uint64 { return o.addr }
