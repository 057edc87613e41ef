package counts_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/counts"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestCodeLabel(t *testing.T) {
	full := counts.Code{Module: "prog", Function: "main", File: "/src/main.c", Line: 7, Addr: 0x1139}
	for _, tt := range []struct {
		code counts.Code
		kind counts.Kind
		want string
	}{
		{full, counts.Module, "prog"},
		{full, counts.Function, "main  (prog)"},
		{full, counts.Line, "main.c:7  main  (prog)"},
		{counts.Code{Module: "prog", File: "/src/main.c", Line: 7}, counts.Line, "main.c:7  (prog)"},
		{full, counts.Instruction, "0x1139  main  main.c:7  (prog)"},
		{counts.Code{Module: "prog", Function: "main", Addr: 0x1139}, counts.Instruction, "0x1139  main  (prog)"},
		{counts.Code{Module: "prog"}, counts.Line, "[unknown]  (prog)"},
		{counts.Code{}, counts.Instruction, "[unknown]  ([unknown])"},
		{counts.Code{}, counts.Module, "[unknown]"},
	} {
		if got := tt.code.Label(tt.kind); got != tt.want {
			t.Errorf("%+v by %v: %q, want %q", tt.code, tt.kind, got, tt.want)
		}
	}
}
