package export

import (
	"bufio"
	"io"
	"slices"
	"strconv"
)

// The schema of speedscope's files, see
// https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts.
const speedscopeSchema = "https://www.speedscope.app/file-format-schema.json"

type speedscopeFrame struct {
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// Speedscope writes a file for speedscope, with a sampled profile for each type. Stacks
// with the same frames are one sample, so samples have no order of time. Values that are
// negative or not known are left out, because the program cannot show them.
func Speedscope(w io.Writer, p *Profile, exporter string) (Omission, error) {
	out := &speedscope{jsonStream: &jsonStream{w: bufio.NewWriterSize(w, 1<<16)}, numbers: map[*Frame]int{}, index: map[speedscopeFrame]int{}}
	out.text(`{"$schema":`).value(speedscopeSchema).text(`,"exporter":`).value(exporter).
		text(`,"name":`).value(clean(p.Title)).text(`,"activeProfileIndex":`).value(p.Default).text(`,"profiles":[`)
	for i := range p.Types {
		if i > 0 {
			out.text(",")
		}
		out.text("\n")
		out.profile(p, i)
	}
	out.text("],\n\"shared\":{\"frames\":[")
	writeList(out.jsonStream, slices.Values(out.frames), func(f speedscopeFrame) { out.text("\n").value(f) })
	out.text("]}}\n")
	return out.left, out.flush()
}

// speedscope writes a file, and numbers its frames.
type speedscope struct {
	*jsonStream
	left    Omission
	numbers map[*Frame]int
	index   map[speedscopeFrame]int
	frames  []speedscopeFrame
}

// profile writes the profile of a type. Of a stack it makes the text that differs from the one
// before.
func (o *speedscope) profile(p *Profile, typ int) {
	t := p.Types[typ]
	o.text(`{"type":"sampled","name":`).value(clean(t.Name)).text(`,"unit":`).value(speedscopeUnit(t.Unit)).
		text(`,"startValue":0,"samples":[`)
	var (
		weights column[float64]
		total   float64
		thread  string
		line    []byte // the numbers of the stack at hand
		ends    []int  // in the line: of the thread's number, and of each frame's
		known   int    // how many frames of the line the next stack has as well
	)
	for s := range p.Stacks {
		v := s.Values[typ]
		known = min(known, s.Same)
		if !o.left.add(v) {
			continue
		}
		if len(ends) == 0 || s.Thread != thread {
			thread, known, line = s.Thread, 0, append(line[:0], '[')
			if thread != "" {
				line = strconv.AppendInt(line, int64(o.number(speedscopeFrame{Name: clean(thread)})), 10)
			}
			ends = append(ends[:0], len(line))
		}
		line, ends = line[:ends[known]], ends[:known+1]
		for _, f := range s.Frames[known:] {
			if len(line) > 1 {
				line = append(line, ',')
			}
			line = strconv.AppendInt(line, int64(o.frame(f)), 10)
			ends = append(ends, len(line))
		}
		known = len(s.Frames)
		if weights.n > 0 {
			o.text(",")
		}
		o.w.Write(line) // the error stays, and flush returns it
		o.text("]")
		weights.add(v)
		total += v
	}
	o.text(`],"weights":[`)
	writeList(o.jsonStream, weights.all, o.float)
	o.text(`],"endValue":`).value(total).text("}")
}

// speedscopeUnit is the schema's unit of a type.
func speedscopeUnit(unit string) string {
	switch unit {
	case "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes":
		return unit
	}
	return "none"
}

// frame returns the number of a frame.
func (o *speedscope) frame(f *Frame) int {
	i, ok := o.numbers[f]
	if !ok {
		i = o.number(speedscopeFrame{Name: f.label(), File: clean(f.File), Line: f.Line})
		o.numbers[f] = i
	}
	return i
}

func (o *speedscope) number(frame speedscopeFrame) int {
	i, ok := o.index[frame]
	if !ok {
		i = len(o.frames)
		o.index[frame] = i
		o.frames = append(o.frames, frame)
	}
	return i
}
