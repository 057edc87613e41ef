package main

import (
	"math"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestKendall(t *testing.T) {
	list := []result{{want: 1, got: 1}, {want: 2, got: 3}, {want: 3, got: 2}}
	if got := kendall(list); math.Abs(got-1.0/3) > 1e-9 {
		t.Errorf("tau is %v", got)
	}
}
