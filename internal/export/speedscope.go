package export

import (
	"bufio"
	"encoding/json"
	"io"
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
	out := &jsonStream{w: bufio.NewWriter(w)}
	var left Omission
	frames := &speedscopeFrames{index: map[speedscopeFrame]int{}}
	out.text(`{"$schema":`).value(speedscopeSchema).text(`,"exporter":`).value(exporter).
		text(`,"name":`).value(clean(p.Title)).text(`,"activeProfileIndex":`).value(p.Default).text(`,"profiles":[`)
	for i := range p.Types {
		if i > 0 {
			out.text(",")
		}
		out.text("\n")
		left = out.speedscope(p, i, frames, left)
	}
	out.text("],\n\"shared\":{\"frames\":[")
	for i, f := range frames.list {
		if i > 0 {
			out.text(",")
		}
		out.text("\n").value(f)
	}
	out.text("]}}\n")
	return left, out.flush()
}

// speedscope writes the profile of a type.
func (j *jsonStream) speedscope(p *Profile, typ int, frames *speedscopeFrames, left Omission) Omission {
	t := p.Types[typ]
	j.text(`{"type":"sampled","name":`).value(clean(t.Name)).text(`,"unit":`).value(speedscopeUnit(t.Unit)).
		text(`,"startValue":0,"samples":[`)
	var weights []float64
	var stack []int
	total := 0.0
	for s := range p.Stacks {
		v := s.Values[typ]
		if !left.add(v) {
			continue
		}
		stack = stack[:0]
		if s.Thread != "" {
			stack = append(stack, frames.of(speedscopeFrame{Name: clean(s.Thread)}))
		}
		for _, f := range s.Frames {
			stack = append(stack, frames.of(speedscopeFrame{Name: f.label(), File: clean(f.File), Line: f.Line}))
		}
		if len(weights) > 0 {
			j.text(",")
		}
		j.value(stack)
		weights = append(weights, v)
		total += v
	}
	j.text(`],"weights":[`)
	for i, v := range weights {
		if i > 0 {
			j.text(",")
		}
		j.value(v)
	}
	j.text(`],"endValue":`).value(total).text("}")
	return left
}

// speedscopeUnit is the schema's unit of a type.
func speedscopeUnit(unit string) string {
	switch unit {
	case "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes":
		return unit
	}
	return "none"
}

// speedscopeFrames numbers frames.
type speedscopeFrames struct {
	index map[speedscopeFrame]int
	list  []speedscopeFrame
}

func (f *speedscopeFrames) of(frame speedscopeFrame) int {
	i, ok := f.index[frame]
	if !ok {
		i = len(f.list)
		f.index[frame] = i
		f.list = append(f.list, frame)
	}
	return i
}

// A jsonStream writes JSON piece by piece. The first error stays.
type jsonStream struct {
	w   *bufio.Writer
	err error
}

// text writes JSON.
func (j *jsonStream) text(s string) *jsonStream {
	if j.err == nil {
		_, j.err = j.w.WriteString(s)
	}
	return j
}

// value writes a value. It escapes what could end a script around the text.
func (j *jsonStream) value(v any) *jsonStream {
	if j.err != nil {
		return j
	}
	b, err := json.Marshal(v)
	if err == nil {
		_, err = j.w.Write(b)
	}
	j.err = err
	return j
}

func (j *jsonStream) flush() error {
	if j.err != nil {
		return j.err
	}
	return j.w.Flush()
}
