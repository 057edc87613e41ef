package counts

import (
	"fmt"
	"path"
	"strconv"
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
	line := ""
	if c.Line > 0 && (k == Line || k == Instruction) {
		line = path.Base(c.File) + ":" + strconv.Itoa(c.Line)
	}
	switch {
	case k == Module:
		return module
	case k == SourceFile && c.File != "":
		return fmt.Sprintf("%s  (%s)", path.Base(c.File), module)
	case k == SourceFile:
		return fmt.Sprintf("%s  (%s)", unknown, module)
	case k == Instruction && c.Line > 0:
		return "0x" + strconv.FormatUint(c.Addr, 16) + "  " + function + "  " + line + "  (" + module + ")"
	case k == Instruction && c.Addr > 0:
		return "0x" + strconv.FormatUint(c.Addr, 16) + "  " + function + "  (" + module + ")"
	case k == Line && c.Line > 0 && c.Function != "":
		return line + "  " + function + "  (" + module + ")"
	case k == Line && c.Line > 0:
		return line + "  (" + module + ")"
	}
	return function + "  (" + module + ")"
}
