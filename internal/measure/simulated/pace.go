package simulated

import "time"

// Progress is how far a simulation is.
type Progress struct {
	Share float64       // of the run that was simulated
	Total time.Duration // that it takes in all; 0 until that can be told
	First bool          // that it can be told
}

// A pace predicts how long a simulation takes, from its first second. Its beginning is slower
// than the rest, as all code is new then: the later half of the time so far counts.
type pace struct {
	begin time.Time
	marks []mark
	total time.Duration
}

// A mark is the share of the run that was simulated at a time.
type mark struct {
	after time.Duration
	share float64
}

const (
	paceFirst = time.Second           // that a prediction needs
	paceLeast = 0.1                   // of the run, also
	paceLate  = 10 * time.Second      // when less is enough
	paceEach  = 20 * time.Millisecond // between marks
)

// at returns the progress when a share was simulated after a time.
func (p *pace) at(after time.Duration, share float64) Progress {
	if n := len(p.marks); n == 0 || after-p.marks[n-1].after >= paceEach {
		p.marks = append(p.marks, mark{after, share})
	}
	first := p.total == 0 && share > 0 && (after >= paceFirst && share >= paceLeast || after >= paceLate)
	if first {
		half := p.marks[0]
		for _, m := range p.marks {
			if m.after <= after/2 {
				half = m
			}
		}
		left := float64(after) / share * (1 - share)
		if share > half.share {
			left = float64(after-half.after) / (share - half.share) * (1 - share)
		}
		p.total, p.marks = after+time.Duration(left), nil
	}
	return Progress{share, p.total, first}
}
