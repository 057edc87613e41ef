package core

import (
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/simulation"
)

// Pictures are the ways of micro-ops through the pipeline for some pieces.
type Pictures struct {
	Title string
	List  []*Picture
}

// A Picture is that of one piece on a core.
type Picture struct {
	*Result
	*simulation.Picture
	Texts []string // of the piece's instructions
}

// mostTraced bounds the instructions of a picture.
const mostTraced = 1 << 20

// Trace returns the pictures of a document's pieces, on the first core. iterations 0 is as
// many as are clear on a page. It leaves out pieces that were analysed on no core.
func (d *Document) Trace(iterations int) (*Pictures, error) {
	out := &Pictures{Title: d.Title}
	for _, r := range d.Pieces {
		if r.core == nil {
			continue
		}
		n := iterations
		if n <= 0 {
			n = usual(len(r.Insts))
		}
		if n*len(r.Insts) > mostTraced {
			return nil, fault.Usagef("--iterations %d: of %d instructions, more than %d are too many for a picture", n, len(r.Insts), mostTraced)
		}
		p := &Picture{Result: r, Picture: simulation.Trace(r.core, r.block, n)}
		for i := range r.Insts {
			p.Texts = append(p.Texts, strings.Join(strings.Fields(r.Insts[i].Text), " "))
		}
		out.List = append(out.List, p)
	}
	return out, nil
}

// usual is how many iterations a page shows: about 40 instructions.
func usual(instructions int) int {
	const rows, least, most = 40, 2, 8
	return min(max(rows/instructions, least), most)
}
