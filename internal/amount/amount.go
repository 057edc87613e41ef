// Package amount reads numbers as users write them on a command line.
package amount

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Size reads a size: a number, which may have the unit B, K, M or G. Unit reports whether it
// has one.
func Size(text string) (n int, unit bool, err error) {
	number, shift := text, 0
	if text != "" {
		if i := strings.IndexByte("BKMG", strings.ToUpper(text)[len(text)-1]); i >= 0 {
			number, shift, unit = text[:len(text)-1], 10*i, true
		}
	}
	n, err = strconv.Atoi(number)
	if err != nil || n <= 0 || n > math.MaxInt>>shift {
		return 0, unit, errors.New("not a number of bytes, such as 256M")
	}
	return n << shift, unit, nil
}

// Time reads a time: a number of milliseconds, as perf has it, or a duration such as 1.5s.
func Time(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if n, errN := strconv.ParseUint(text, 10, 31); errN == nil {
		d, err = time.Duration(n)*time.Millisecond, nil
	}
	if err != nil || d <= 0 {
		return 0, errors.New("it is a number of milliseconds, or a time such as 1.5s")
	}
	return d, nil
}

// A Delay is a flag of the time until something begins. Never, -1, waits for a command.
type Delay time.Duration

// Never is the delay of what begins by a command only: some decades.
const Never = Delay(1 << 60)

// Set reads a delay.
func (d *Delay) Set(text string) error {
	if text == "-1" {
		*d = Never
		return nil
	}
	t, err := Time(text)
	*d = Delay(t)
	return err
}

func (d *Delay) String() string { return "" }

// Type names the values.
func (d *Delay) Type() string { return "MS" }

// mostNumbers bounds a list of CPUs or processes: no machine has more CPUs, and
// nobody names more processes.
const mostNumbers = 1 << 16

// Numbers reads a list such as 0-3,8, in its order and without duplicates. Ranges are for
// CPUs.
func Numbers(list string, ranges bool) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var all []int
	for part := range strings.SplitSeq(list, ",") {
		low, high, span := strings.Cut(strings.TrimSpace(part), "-")
		if !span {
			high = low
		}
		from, err1 := strconv.ParseUint(low, 10, 31)
		to, err2 := strconv.ParseUint(high, 10, 31)
		switch {
		case err1 != nil || err2 != nil || span && !ranges:
			return nil, fmt.Errorf("%s: %q is not a number", list, part)
		case to < from || to-from >= mostNumbers || len(all) >= mostNumbers:
			return nil, fmt.Errorf("%s: %q is not a range of CPUs", list, part)
		}
		for n := from; n <= to; n++ {
			if !slices.Contains(all, int(n)) {
				all = append(all, int(n))
			}
		}
	}
	return all, nil
}
