package counts

import (
	"fmt"
	"path"
)

// unknown stands for what has no name.
const unknown = "[unknown]"

// Label names the place as one of a kind, and after two blanks its module in
// brackets.
func (c *Code) Label(k Kind) string {
	module, function := c.Module, c.Function
	if module == "" {
		module = unknown
	}
	if function == "" {
		function = unknown
	}
	line := fmt.Sprintf("%s:%d", path.Base(c.File), c.Line)
	switch {
	case k == Module:
		return module
	case k == SourceFile && c.File != "":
		return fmt.Sprintf("%s  (%s)", path.Base(c.File), module)
	case k == SourceFile:
		return fmt.Sprintf("%s  (%s)", unknown, module)
	case k == Instruction && c.Line > 0:
		return fmt.Sprintf("%#x  %s  %s  (%s)", c.Addr, function, line, module)
	case k == Instruction && c.Addr > 0:
		return fmt.Sprintf("%#x  %s  (%s)", c.Addr, function, module)
	case k == Line && c.Line > 0 && c.Function != "":
		return fmt.Sprintf("%s  %s  (%s)", line, function, module)
	case k == Line && c.Line > 0:
		return fmt.Sprintf("%s  (%s)", line, module)
	}
	return fmt.Sprintf("%s  (%s)", function, module)
}
