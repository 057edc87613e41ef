package counts

import "math"

// A Joint says how the counts of one scope vary together from run to run: the
// covariances of their means. perf prints only how each varies by itself.
type Joint struct {
	Runs int
	n    int
	c    []float64 // n²: covariances of the columns' means
}

// Variance returns the variance of a weighted sum of the columns' means.
func (j *Joint) Variance(weights []float64) float64 {
	sum := 0.0
	for a, x := range weights {
		for b, y := range weights {
			if x != 0 && y != 0 { // what was not counted has no covariances
				sum += x * y * j.c[a*j.n+b]
			}
		}
	}
	return max(sum, 0)
}

// Joint returns how the counts of a scope vary together, nil where that is not
// known.
func (t *Table) Joint(scope int) *Joint {
	if scope >= len(t.joints) {
		return nil
	}
	return t.joints[scope]
}

// TakeRuns copies the runs of another table of the same scopes, for this one's columns, in its
// order.
func (t *Table) TakeRuns(from *Table, columns []int) {
	t.joints, t.courses = nil, nil
	for _, j := range from.joints {
		t.joints = append(t.joints, j.of(columns))
	}
	for scope := range from.Scopes {
		for _, c := range columns {
			if course := from.Course(scope, c); course != nil {
				t.courses = append(t.courses, *course)
			}
		}
	}
}

// of returns the part for some columns.
func (j *Joint) of(columns []int) *Joint {
	if j == nil {
		return nil
	}
	out := &Joint{Runs: j.Runs, n: len(columns), c: make([]float64, len(columns)*len(columns))}
	for a, x := range columns {
		for b, y := range columns {
			out.c[a*out.n+b] = j.c[x*j.n+y]
		}
	}
	return out
}

// jointMost bounds what is remembered of how counts vary together: numbers in
// all. Above, each count's own variance is left.
const jointMost = 4 << 20

// Runs gathers how counts vary over the runs of a repetition, whose tables have
// one layout: together, and from run to run.
type Runs struct {
	scopes  []scopeSums // nil if there are too many counts
	courses []Course    // by cell
	n       int         // columns
	begun   bool
}

// scopeSums are the sums of one scope, kept up to date as by Welford (1962).
type scopeSums struct {
	runs  int
	mean  []float64
	about []float64 // n²: sums of products of differences from the means
}

// Add adds a run.
func (r *Runs) Add(t *Table) {
	if !r.begun {
		r.begun, r.n = true, len(t.Columns)
		if r.n*r.n*len(t.Scopes) <= jointMost {
			r.scopes = make([]scopeSums, len(t.Scopes))
		}
		r.courses = make([]Course, len(t.cells))
		for i := range r.courses {
			r.courses[i].Runs = true
		}
	}
	for i := range min(len(r.courses), len(t.cells)) {
		r.courses[i].add(&t.cells[i])
	}
	for i := range r.scopes {
		if i < len(t.Scopes) && len(t.Columns) == r.n {
			r.scopes[i].add(t.Row(i))
		}
	}
}

// add adds a run's counts. One that was not counted makes its covariances
// unknown.
func (g *scopeSums) add(row []Cell) {
	n := len(row)
	if g.mean == nil {
		g.mean, g.about = make([]float64, n), make([]float64, n*n)
	}
	g.runs++
	before := make([]float64, n) // differences from the means before this run
	for k := range row {
		v := math.NaN()
		if row[k].Ok() {
			v = row[k].Value
		}
		before[k] = v - g.mean[k]
		g.mean[k] += before[k] / float64(g.runs)
	}
	shrink := float64(g.runs-1) / float64(g.runs)
	for a := range before {
		for b := range before {
			g.about[a*n+b] += before[a] * before[b] * shrink
		}
	}
}

// Put gives a table of the runs' means what was gathered.
func (r *Runs) Put(t *Table) {
	t.joints, t.courses = nil, nil
	if len(r.courses) == len(t.cells) {
		t.courses = r.courses
	}
	for i := range r.scopes {
		var j *Joint
		if g := &r.scopes[i]; g.runs > 1 {
			j = &Joint{Runs: g.runs, n: r.n, c: scaledBy(g.about, 1/float64(g.runs-1)/float64(g.runs))}
		}
		t.joints = append(t.joints, j)
	}
}
