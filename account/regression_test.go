package account_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/model"
)

// A joint is a normal distribution of the logarithms of counts. Each recording that it is fitted
// to has some of the events.
type joint struct {
	mean []float64
	cov  [][]float64
}

// given returns the mean and the covariance of some events, given the others that x has.
// NaN is no count.
func (j *joint) given(x []float64, unknown []int) (mean []float64, cov [][]float64) {
	var known []int
	for i, v := range x {
		if !math.IsNaN(v) && !slices.Contains(unknown, i) {
			known = append(known, i)
		}
	}
	inverse := invert(j.part(known, known))
	cross := j.part(unknown, known)
	gain := product(cross, inverse)
	cov = j.part(unknown, unknown)
	for a, i := range unknown {
		m := j.mean[i]
		for k, at := range known {
			m += gain[a][k] * (x[at] - j.mean[at])
		}
		mean = append(mean, m)
		for b := range unknown {
			for k := range known {
				cov[a][b] -= gain[a][k] * cross[b][k]
			}
		}
	}
	return mean, cov
}

func (j *joint) part(rows, columns []int) [][]float64 {
	m := make([][]float64, len(rows))
	for a, i := range rows {
		for _, k := range columns {
			m[a] = append(m[a], j.cov[i][k])
		}
	}
	return m
}

func product(x, y [][]float64) [][]float64 {
	m := make([][]float64, len(x))
	for i := range x {
		m[i] = make([]float64, len(y))
		for k := range y {
			for l := range y[k] {
				m[i][l] += x[i][k] * y[k][l]
			}
		}
	}
	return m
}

// invert inverts a positive definite matrix by Gauss and Jordan.
func invert(m [][]float64) [][]float64 {
	n := len(m)
	for i := range m {
		m[i] = append(m[i], make([]float64, n)...)
		m[i][n+i] = 1
	}
	for i := range m {
		p := m[i][i]
		for k := range m[i] {
			m[i][k] /= p
		}
		for o := range m {
			if f := m[o][i]; o != i && f != 0 {
				for k := range m[o] {
					m[o][k] -= f * m[i][k]
				}
			}
		}
	}
	for i := range m {
		m[i] = m[i][n:]
	}
	return m
}

// fit fits a joint distribution by expectation and maximisation (Dempster, Laird and Rubin). A
// prior, of weight many recordings, has counts that vary by own each and by common together.
func fit(rows [][]float64, weight, own, common float64) *joint {
	n := len(rows[0])
	j := &joint{mean: make([]float64, n), cov: make([][]float64, n)}
	prior := func(i, k int) float64 {
		if i == k {
			return common*common + own*own
		}
		return common * common
	}
	for i := range n {
		many := 0.0
		for _, x := range rows {
			if !math.IsNaN(x[i]) {
				j.mean[i] += x[i]
				many++
			}
		}
		j.mean[i] /= max(many, 1)
		for k := range n {
			j.cov[i] = append(j.cov[i], prior(i, k))
		}
	}
	for range 12 {
		next := &joint{mean: make([]float64, n), cov: make([][]float64, n)}
		filled, extra := make([][]float64, len(rows)), make([][]float64, n)
		for i := range n {
			extra[i] = make([]float64, n)
		}
		for r, x := range rows {
			var unknown []int
			for i, v := range x {
				if math.IsNaN(v) {
					unknown = append(unknown, i)
				}
			}
			mean, cov := j.given(x, unknown)
			filled[r] = slices.Clone(x)
			for a, i := range unknown {
				filled[r][i] = mean[a]
				for b, k := range unknown {
					extra[i][k] += cov[a][b]
				}
			}
			for i := range n {
				next.mean[i] += filled[r][i] / float64(len(rows))
			}
		}
		for i := range n {
			next.cov[i] = make([]float64, n)
			for k := range n {
				s := extra[i][k] + weight*prior(i, k)
				for _, x := range filled {
					s += (x[i] - next.mean[i]) * (x[k] - next.mean[k])
				}
				next.cov[i][k] = s / (float64(len(rows)) + weight)
			}
		}
		j = next
	}
	return j
}

// surprise is by how many standard deviations a count is off, given the others.
func (j *joint) surprise(x []float64, at int) float64 {
	mean, cov := j.given(x, []int{at})
	return math.Abs(x[at]-mean[0]) / math.Sqrt(cov[0][0])
}

// shared lists the events that three authors or more counted.
func shared(list []*recording) []string {
	authors := map[string]map[string]bool{}
	for _, r := range list {
		for event := range amounts(r) {
			if authors[event] == nil {
				authors[event] = map[string]bool{}
			}
			authors[event][author(r.file)] = true
		}
	}
	maps.DeleteFunc(authors, func(_ string, by map[string]bool) bool { return len(by) < 3 })
	return slices.Sorted(maps.Keys(authors))
}

// TestRegressions predicts each count of the published recordings from their other counts. The
// joint distribution is fitted to the recordings of all other authors. docs/audit.md has
// how often a changed count would be noticed, and how many sound recordings would be called
// improbable: the product has no such prediction.
func TestRegressions(t *testing.T) {
	testlong.Only(t)
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	list := publishedRecordings(t, cat)
	events := shared(list)
	rowOf := func(of map[string]float64) []float64 {
		x := make([]float64, len(events))
		for i, event := range events {
			x[i] = math.NaN()
			if v, ok := of[event]; ok {
				x[i] = math.Log(v)
			}
		}
		return x
	}
	type trial struct {
		now      [2]bool    // the changed count is noticed by the product
		surprise [2]float64 // of the changed count
	}
	var trials []trial
	worst := map[*recording]float64{}
	fits := map[string]*joint{}
	for _, r := range list {
		who := author(r.file)
		if fits[who] == nil {
			var rows [][]float64
			for _, o := range list {
				if author(o.file) != who {
					rows = append(rows, rowOf(amounts(o)))
				}
			}
			fits[who] = fit(rows, 5, 1, 5)
		}
		x := rowOf(amounts(r))
		before := suspected(r.audit(r.table))
		for at := range x {
			if !math.IsNaN(x[at]) {
				worst[r] = max(worst[r], fits[who].surprise(x, at))
			}
		}
		for col := range levels(r) {
			event, core := eventOf(r, col)
			if c := r.table.Cell(0, col); !core || !c.Ok() || c.Value == 0 {
				continue
			}
			var one trial
			at := slices.Index(events, commonName(r, col))
			for k, by := range []float64{3, 0.5} {
				spoilt := r.table.Clone()
				spoilt.Cell(0, col).Value *= by
				_, one.now[k], _ = found(r.audit(spoilt), event, before)
				if at >= 0 && !math.IsNaN(x[at]) {
					y := slices.Clone(x)
					y[at] += math.Log(by)
					one.surprise[k] = fits[who].surprise(y, at)
				}
			}
			trials = append(trials, one)
		}
	}
	var b strings.Builder
	b.WriteString("| standard deviations | recordings that are wrongly improbable | tripled: noticed now | and by prediction | halved: noticed now | and by prediction |\n|---|---|---|---|---|---|\n")
	for _, limit := range []float64{2, 3, 4, 6, 10} {
		var wrong tally
		var noticed [4]tally
		for _, r := range list {
			wrong.add(worst[r] > limit)
		}
		for _, one := range trials {
			for k := range one.now {
				noticed[2*k].add(one.now[k])
				noticed[2*k+1].add(one.now[k] || one.surprise[k] > limit)
			}
		}
		fmt.Fprintf(&b, "| %g | %d of %d | %v | %v | %v | %v |\n", limit, wrong.caught, wrong.of, noticed[0], noticed[1], noticed[2], noticed[3])
	}
	golden(t, "../docs/audit.md", "regressions", b.String())
}
