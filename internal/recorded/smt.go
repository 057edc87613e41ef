package recorded

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/accounting"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/resolve"
	"github.com/cyclestack/cyclestack/report"
)

// Siblings say which logical processors share a core: pairs, or the distance between
// the two of each core. The zero Siblings leaves it to recordings of two.
type Siblings struct {
	Pairs    [][2]int
	Distance int
}

// ParseSiblings reads pairs such as 0:28,1:29, or a distance such as +28. "" is the zero
// Siblings.
func ParseSiblings(text string) (s Siblings, err error) {
	wrong := func(why string) error {
		return &fault.OptionError{Option: "siblings", Value: text, Err: errors.New(why)}
	}
	if text == "" {
		return s, nil
	}
	if distance, ok := strings.CutPrefix(text, "+"); ok {
		if s.Distance, err = strconv.Atoi(distance); err != nil || s.Distance <= 0 {
			return s, wrong("+ and the distance between the CPUs of a core")
		}
		return s, nil
	}
	for _, p := range strings.Split(text, ",") {
		x, y, ok := strings.Cut(p, ":")
		a, errA := strconv.Atoi(strings.TrimSpace(x))
		b, errB := strconv.Atoi(strings.TrimSpace(y))
		if !ok || errA != nil || errB != nil || a == b {
			return s, wrong("pairs such as 0:28,1:29, or +28")
		}
		for _, q := range s.Pairs {
			if slices.Contains(q[:], a) || slices.Contains(q[:], b) {
				return s, wrong("a CPU is in two pairs")
			}
		}
		s.Pairs = append(s.Pairs, [2]int{a, b})
	}
	return s, nil
}

// SMT writes the account of each core of a recording, from the counts of its logical
// processors.
func (r *Recordings) SMT(w report.Writer, by counts.By, siblings Siblings) error {
	o := r.options(by.With(counts.CPU))
	o.SMT, o.Need = true, "smt needs counts of each logical processor (perf stat -A)"
	o.Places = siblings.cores
	_, err := r.accounts(accounting.New(w, o), resolve.Request{Prefer: resolve.SMTModel}, nil, nil)
	return err
}

// cores returns the pairs of logical processors that share a core.
func (s Siblings) cores(t *counts.Table) ([]accounting.Place, error) {
	row := map[int]int{}
	for i, s := range t.Scopes {
		row[s.CPU] = i
	}
	pairs, note, err := s.in(t)
	if err != nil {
		return nil, err
	}
	var list []accounting.Place
	for _, p := range pairs {
		a, okA := row[p[0]]
		b, okB := row[p[1]]
		if !okA || !okB {
			return nil, &fault.OptionError{Option: "siblings", Value: fmt.Sprintf("%d:%d", p[0], p[1]), Err: errors.New("the recording does not have both")}
		}
		core := accounting.Core(t, []int{a, b})
		core.Note = note
		list = append(list, core)
	}
	return list, nil
}

// in returns the pairs of a table. Two logical processors are assumed to share a core.
func (s Siblings) in(t *counts.Table) (pairs [][2]int, note string, err error) {
	switch {
	case s.Pairs != nil:
		return s.Pairs, "", nil
	case s.Distance == 0 && len(t.Scopes) == 2:
		a, b := t.Scopes[0].CPU, t.Scopes[1].CPU
		return [][2]int{{a, b}}, fmt.Sprintf("CPU%d and CPU%d are taken to share a core, as the recording has only these", a, b), nil
	case s.Distance == 0:
		return nil, "", fault.Usagef("the recording has counts of %d, not 2, CPUs: say with %s which share a core, such as 0:28,1:29 or +28", len(t.Scopes), fault.Name("siblings"))
	}
	for _, scope := range t.Scopes {
		if slices.ContainsFunc(t.Scopes, func(o counts.Scope) bool { return o.CPU == scope.CPU+s.Distance }) {
			pairs = append(pairs, [2]int{scope.CPU, scope.CPU + s.Distance})
		}
	}
	if len(pairs) == 0 {
		return nil, "", &fault.OptionError{Option: "siblings", Value: fmt.Sprintf("+%d", s.Distance), Err: errors.New("the recording has no two CPUs that far apart")}
	}
	return pairs, "", nil
}
