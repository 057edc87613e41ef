package limits

import "github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"

// A Picture is the way of micro-ops through the pipeline, for some iterations of a block from
// an empty pipeline. Cycles are counted from the first fetch.
type Picture struct {
	Core  string
	Ports []string
	Rows  []Row // in program order
	End   int   // the cycle behind the last retirement
}

// A Row is a micro-op, or an instruction that needs no port.
type Row struct {
	Instruction, Iteration int
	First                  bool // of the instruction's rows
	Kind                   pipeline.UopKind
	Port                   string // that executes it; "" for none
	Fused                  bool   // the next instruction is part of it
	Stores                 bool

	Fetched    int // out of the cache of decoded instructions
	Dispatched int
	Ready      int // its operands are known
	Issued     int // to the port
	Done       int
	Retired    int
	Wait       pipeline.Wait // what dispatch waited for last
}

// Trace executes a block until its time is steady, lets the pipeline run empty, and returns the
// next iterations.
func Trace(core *pipeline.Core, b *pipeline.Block, iterations int) *Picture {
	m := pipeline.NewMachine(core)
	m.Cycles(b)
	m.Reset()
	rec := pipeline.NewRecorder()
	m.Record(rec)
	m.Rounds(b, m.Executions(), iterations)
	p := &Picture{Core: core.Name, Ports: core.PortNames()}
	if len(rec.Records) == 0 {
		return p
	}
	start := rec.Records[0].Fetched
	at := func(cycle int64) int { return int(cycle-start) + 1 } // dispatch is drawn behind the fetch
	n := len(b.Ops())
	for i := range rec.Records {
		r := &rec.Records[i]
		row := Row{Instruction: i % n, Iteration: i / n, First: true, Wait: r.Wait, Stores: b.Ops()[i%n].Stores,
			Fetched: at(r.Fetched) - 1, Dispatched: at(r.Dispatched), Retired: at(r.Retired)}
		if last := len(p.Rows) - 1; r.Fused && last >= 0 && r.Uops.End > r.Uops.First {
			of, u := &p.Rows[last], &rec.Uops[r.Uops.First]
			of.Fused, of.Ready, of.Issued, of.Done, of.Retired = true, at(u.Ready), at(u.Issue), at(u.Done), at(r.Retired)
			if of.Port = ""; u.Port >= 0 {
				of.Port = p.Ports[u.Port]
			}
			p.End = max(p.End, of.Retired+1)
			continue
		}
		uops := rec.Uops[r.Uops.First:r.Uops.End]
		if len(uops) == 0 {
			row.Ready, row.Issued, row.Done = row.Dispatched, row.Dispatched, at(r.Executed)
			p.Rows = append(p.Rows, row)
		}
		for _, u := range uops {
			row.Kind, row.Port = u.Kind, ""
			if u.Port >= 0 {
				row.Port = p.Ports[u.Port]
			}
			row.Ready, row.Issued, row.Done = at(u.Ready), at(u.Issue), at(u.Done)
			p.Rows = append(p.Rows, row)
			row.First = false
		}
		p.End = max(p.End, row.Retired+1)
	}
	return p
}
