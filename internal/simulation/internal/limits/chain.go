package limits

import "github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"

// A search looks for the chain with the most cycles per iteration among the values of the
// recorded iterations. It computes when each value would be known if it waited for values
// alone, and follows the latest backwards.
type search struct {
	*analyser
	known []int64 // by value
	last  []int32 // by value: the edge that it waits for longest, or -1
	free  pipeline.Dependence
}

// chain finds the chain that limits the block.
func (a *analyser) chain(f pipeline.Freedom) {
	s := &search{analyser: a, free: f.Dependence, known: make([]int64, len(a.rec.Values)), last: make([]int32, len(a.rec.Values))}
	for v := range a.rec.Values {
		s.settle(int32(v), f.Forwarding)
	}
	from := s.steepest()
	if from < 0 {
		return
	}
	path := s.path(from)
	first, end, span, ratio := s.cycle(path)
	if ratio <= 0 {
		return
	}
	out := a.out
	out.ChainSpan = span
	blocked := false
	// The path goes backwards: the oldest link is the first of the list.
	for i := end - 1; i >= first; i-- {
		e := &a.rec.Edges[s.last[path[i]]]
		at := int(a.rec.Values[path[i]].Record) % a.n
		out.Instructions[at].Chained = true
		blocked = blocked || e.Blocked
		l := Link{Instruction: at, Latency: float64(e.Latency), By: a.block.RegisterName(e.By), Blocked: e.Blocked, Aliased: e.Aliased,
			Address:    a.rec.Values[path[i]].Loaded && !e.Memory,
			Dependence: pipeline.Dependence{Addr: a.block.Ops()[at].Addr(), Register: e.By, Memory: e.Memory}}
		switch {
		case e.Memory:
			l.By = "memory"
		case e.By == pipeline.NoRegister && len(out.Chain) > 0 && out.Chain[len(out.Chain)-1].Instruction == at:
			out.Chain[len(out.Chain)-1].Latency += l.Latency // what it has loaded, and computes with
			continue
		}
		out.Chain = append(out.Chain, l)
	}
	if n := len(out.Chain); n > 1 && out.Chain[0].By == "" && out.Chain[n-1].Instruction == out.Chain[0].Instruction {
		out.Chain[n-1].Latency += out.Chain[0].Latency // the path began within an instruction
		out.Chain = out.Chain[1:]
	}
	kind := Chain
	if blocked {
		kind = Forwarding
	}
	out.Limits = append(out.Limits, Limit{Kind: kind, Cycles: ratio})
}

// settle finds when a value is known.
func (s *search) settle(v int32, forwarding bool) {
	s.known[v], s.last[v] = 0, -1
	val := &s.rec.Values[v]
	addr := s.block.Ops()[int(val.Record)%s.n].Addr()
	for i := val.Edges.First; i < val.Edges.End; i++ {
		e := &s.rec.Edges[i]
		switch {
		case e.Memory && (forwarding || s.free.Memory && s.free.Addr == addr):
			continue
		case e.By != pipeline.NoRegister && s.free.Register == e.By && s.free.Addr == addr:
			continue
		}
		if t := s.known[e.From] + int64(e.Latency); s.last[v] < 0 || t > s.known[v] {
			s.known[v], s.last[v] = t, i
		}
	}
}

// before returns the same value some iterations before, or -1.
func (s *search) before(v int32, iterations int) int32 {
	val := &s.rec.Values[v]
	r := int(val.Record) - iterations*s.n
	if r < 0 {
		return -1
	}
	of := &s.rec.Records[r]
	if at := of.Values.First + v - s.rec.Records[val.Record].Values.First; at < of.Values.End {
		return at
	}
	return -1
}

// steepest returns the value of the last iteration that fell behind most in some iterations, or
// -1 if none did.
func (s *search) steepest() int32 {
	half := s.iters / 2
	best, steepest := int32(-1), int64(0)
	for i := len(s.rec.Records) - s.n; i < len(s.rec.Records); i++ {
		r := &s.rec.Records[i]
		for v := r.Values.First; v < r.Values.End; v++ {
			u := s.before(v, half)
			if u < 0 {
				continue
			}
			if d := s.known[v] - s.known[u]; d > steepest {
				best, steepest = v, d
			}
		}
	}
	return best
}

// path returns the values that a value has waited for, one after the other.
func (s *search) path(v int32) []int32 {
	path := []int32{v}
	for s.last[v] >= 0 {
		v = s.rec.Edges[s.last[v]].From
		path = append(path, v)
	}
	return path
}

// cycle finds the part of a path that repeats with the most cycles per iteration: from
// first up to and without end.
func (s *search) cycle(path []int32) (first, end, span int, ratio float64) {
	type place struct{ instruction, value int }
	seen := map[place]int{}
	for i, v := range path {
		val := &s.rec.Values[v]
		p := place{int(val.Record) % s.n, int(v - s.rec.Records[val.Record].Values.First)}
		j, again := seen[p]
		seen[p] = i
		if !again {
			continue
		}
		iterations := int(s.rec.Values[path[j]].Record-val.Record) / s.n
		if iterations <= 0 {
			continue
		}
		if r := float64(s.known[path[j]]-s.known[v]) / float64(iterations); r > ratio+1e-9 {
			first, end, span, ratio = j, i, iterations, r
		}
	}
	return first, end, span, ratio
}
