// Package cpulist reads and writes lists of logical processors as the kernel and
// perf spell them: "0-3,8".
package cpulist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/spelling"
)

// maxCPU bounds the numbers of logical processors. Linux can be built for 8192
// of them; what a list expands to has to be bounded whatever it says.
const maxCPU = 1 << 16

// Parse parses a list of logical processors as the kernel prints it and
// users write it: "0-3,8,10-11". The result is in order and without
// duplicates; it is empty, and not nil, for a list of none.
func Parse(list string) ([]int, error) {
	cpus := []int{}
	list = strings.TrimSpace(list)
	if list == "" {
		return cpus, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := cpuNumber(first)
		if err != nil {
			return nil, err
		}
		to := from
		if isRange {
			if to, err = cpuNumber(last); err != nil {
				return nil, err
			}
		}
		if to < from {
			return nil, fmt.Errorf("processors %s: the range runs backwards", spelling.Clip(part))
		}
		if len(cpus)+to-from >= 4*maxCPU {
			return nil, fmt.Errorf("the list of processors is too long")
		}
		for n := from; n <= to; n++ {
			cpus = append(cpus, n)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

func cpuNumber(s string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a number of a processor", spelling.Clip(s))
	case n >= maxCPU:
		return 0, fmt.Errorf("processor %d: there cannot be more than %d", n, maxCPU)
	}
	return int(n), nil
}

// Format is the inverse of Parse.
func Format(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpus[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(cpus[j]))
		}
		i = j + 1
	}
	return b.String()
}
