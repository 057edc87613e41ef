package measure

import (
	"fmt"
	"strings"
)

// Branches are the branches that a sample has, as bits of the kernel's
// perf_branch_sample_type.
type Branches uint64

// branchFilters are the names of the bits in perf, in the order of the bits.
var branchFilters = [...]string{"u", "k", "hv", "any", "any_call", "any_ret", "ind_call", "abort_tx", "in_tx", "no_tx", "cond",
	"stack", "ind_jmp", "call", "no_flags", "no_cycles", "save_type", "hw_index", "priv"}

// branchTypes are the bits that name types of branches: all but levels of privilege and
// what is recorded of a branch.
const branchTypes = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<10 | 1<<11 | 1<<12 | 1<<13

// Set adds filters in perf's spelling: any,u. One of them must be a type of branch.
func (b *Branches) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		bit := -1
		for i, f := range branchFilters {
			if f == name {
				bit = i
			}
		}
		if bit < 0 {
			return fmt.Errorf("%q is not one of %s", name, strings.Join(branchFilters[:], ", "))
		}
		*b |= 1 << bit
	}
	if *b&branchTypes == 0 {
		return fmt.Errorf("it names no type of branch: any, any_call, any_ret, ind_call, call, ind_jmp, cond")
	}
	return nil
}
