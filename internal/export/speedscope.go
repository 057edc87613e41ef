package export

import (
	"bufio"
	"io"
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
	out := &speedscope{jsonStream: &jsonStream{w: bufio.NewWriterSize(w, 1<<16)}, index: map[speedscopeFrame]int32{}}
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
	for i, f := range out.frames {
		if i > 0 {
			out.text(",")
		}
		out.text("\n").value(f)
	}
	out.text("]}}\n")
	return out.left, out.flush()
}

// speedscope writes a file, and numbers its frames.
type speedscope struct {
	*jsonStream
	left   Omission
	index  map[speedscopeFrame]int32
	frames []speedscopeFrame
	line   []byte // the numbers of the stack at hand
	ends   []int  // in the line: of its beginning, and of each number
}

// profile writes the profile of a type. Of a stack it makes the text that differs from the one
// before.
func (o *speedscope) profile(p *Profile, typ int) {
	t := p.Types[typ]
	o.text(`{"type":"sampled","name":`).value(clean(t.Name)).text(`,"unit":`).value(speedscopeUnit(t.Unit)).
		text(`,"startValue":0,"samples":[`)
	var weights []float64
	total, thread := 0.0, ""
	base, known := -1, 0 // how many numbers of the line are the thread's, and those of frames that the next stack has as well
	for s := range p.Stacks {
		v := s.Values[typ]
		known = min(known, s.Same)
		if !o.left.add(v) {
			continue
		}
		if base < 0 || s.Thread != thread {
			thread, base, known = s.Thread, 0, 0
			o.line, o.ends = append(o.line[:0], '['), append(o.ends[:0], 1)
			if thread != "" {
				o.push(&Frame{Function: thread})
				base = 1
			}
		}
		o.ends = o.ends[:base+known+1]
		o.line = o.line[:o.ends[base+known]]
		for _, f := range s.Frames[known:] {
			o.push(f)
		}
		known = len(s.Frames)
		if len(weights) > 0 {
			o.text(",")
		}
		o.w.Write(o.line) // the error stays, and flush returns it
		o.text("]")
		weights = append(weights, v)
		total += v
	}
	o.text(`],"weights":[`)
	for i, v := range weights {
		if i > 0 {
			o.text(",")
		}
		o.float(v)
	}
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

// push appends a frame to the line.
func (o *speedscope) push(f *Frame) {
	if f.stream != o.jsonStream {
		key := speedscopeFrame{Name: f.label(), File: clean(f.File), Line: f.Line}
		i, ok := o.index[key]
		if !ok {
			i = int32(len(o.frames))
			o.index[key] = i
			o.frames = append(o.frames, key)
		}
		f.stream, f.number = o.jsonStream, i
	}
	if len(o.line) > 1 {
		o.line = append(o.line, ',')
	}
	o.line = strconv.AppendInt(o.line, int64(f.number), 10)
	o.ends = append(o.ends, len(o.line))
}
