package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Schema names the JSON document of a Result.
const Schema = "cyclestack.calibration/v1"

// ErrUnsupported says that there are no measuring loops for this architecture or
// operating system.
var ErrUnsupported = errors.New("calibration needs Linux on amd64, arm64, ppc64le or riscv64")

// Options say how to calibrate.
type Options struct {
	// Quick uses a coarser curve and fewer samples, and takes less than 15 seconds.
	Quick bool
	// Pin measures on the logical processor CPU, and not on the one that the caller runs
	// on.
	Pin bool
	CPU int
	// MaxSize is the largest working set in bytes; 0 is 512 MiB, or 128 MiB when quick. It
	// is lowered if memory is short.
	MaxSize int
	// Realtime gives the measuring thread precedence over all others on its processor,
	// which needs CAP_SYS_NICE. Other threads then do not empty its caches meanwhile.
	Realtime bool
	// Progress is called with the name of each measurement, if it is not nil.
	Progress func(what string)
}

// A Result is what was measured, and how.
type Result struct {
	Schema string    `json:"schema"`
	CPU    string    `json:"cpu"` // identification of the processor, as model.HostID has it; set by the caller
	Time   time.Time `json:"time"`
	Quick  bool      `json:"quick"`
	// Logical is the logical processor of the measurement, and Node its NUMA node (-1 if
	// unknown). Threads is the number of usable processors.
	Logical int `json:"logical_cpu"`
	Node    int `json:"node"`
	Threads int `json:"threads"`
	// Pages says how the memory was backed, PageBytes the size of its pages.
	Pages     string `json:"pages"`
	PageBytes int    `json:"page_bytes"`
	// Vectors names the instruction set of the loops that measure bandwidth.
	Vectors string `json:"vectors"`

	Clock  Figure  `json:"clock"` // in Hz
	Curve  []Point `json:"curve"` // load-to-use latency by working set, by size
	Levels []Level `json:"levels"`
	// PageCurves are the extra cost of a load by the number of pages visited.
	PageCurves []PageCurve `json:"page_curves"`
	// Costs are the figures of the core: see the names in the documentation.
	Costs []Figure `json:"costs"`
	// Peak is how many floating-point operations one core does in a second; nil in results of
	// earlier versions.
	Peak *Figure `json:"flop_peak,omitempty"`
	// Bandwidth is what threads together moved, Loaded the latency of memory while others
	// use its bandwidth.
	Bandwidth []Bandwidth `json:"bandwidth"`
	Loaded    []Loaded    `json:"loaded_latency"`
	Notes     []string    `json:"notes"`
}

// A Figure is one measured value. Value and Error are NaN if it could not be measured, and
// Why says why not.
type Figure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Value Number `json:"value"`
	Unit  string `json:"unit"`
	Error Number `json:"error"` // in the same unit: the spread of the best samples
	Why   string `json:"why,omitempty"`
}

// Known says whether the figure was measured.
func (f *Figure) Known() bool { return f.Why == "" && !math.IsNaN(float64(f.Value)) }

// absent is a figure that could not be measured.
func absent(f Figure, why string) Figure {
	f.Value, f.Error, f.Why = unknown, unknown, why
	return f
}

// A Point of a latency curve.
type Point struct {
	Bytes  int    `json:"bytes"`
	Cycles Number `json:"cycles"`
	Nanos  Number `json:"ns"`
	Error  Number `json:"error"` // in cycles
	Why    string `json:"why,omitempty"`
}

// A Level is a piece of the curve with about the same latency: a cache, or memory, which is
// the last.
type Level struct {
	Name   string `json:"name"` // L1, L2, L3, memory
	Cycles Number `json:"cycles"`
	Nanos  Number `json:"ns"`
	Error  Number `json:"error"`      // in cycles
	From   int    `json:"from_bytes"` // smallest and
	To     int    `json:"to_bytes"`   // largest working set on level ground
	Why    string `json:"why,omitempty"`
}

// A PageCurve is the extra cost of loads of one line per page, over loads of as many adjacent
// lines.
type PageCurve struct {
	PageBytes int         `json:"page_bytes"`
	Stride    int         `json:"stride_pages"` // pages from one visited page to the next
	Points    []PagePoint `json:"points"`
}

// A PagePoint is the extra cost of a load when so many pages are visited in turn.
type PagePoint struct {
	Pages  int    `json:"pages"`
	Cycles Number `json:"cycles"`
	Error  Number `json:"error"`
	Why    string `json:"why,omitempty"`
}

// A Bandwidth is the rate of threads that move data. Each has a processor and memory of
// its own. It counts the bytes that the program reads and writes, as STREAM does, and not
// those that the caches add.
type Bandwidth struct {
	Figure
	Kernel    string `json:"kernel"` // read, write, copy, triad
	Streaming bool   `json:"streaming"`
	Threads   int    `json:"threads"`
}

// A Loaded is the latency of memory while other threads read it.
type Loaded struct {
	Threads   int    `json:"threads"` // threads that read
	Share     Number `json:"share"`   // of the time that each of them reads
	Bandwidth Number `json:"bytes_per_second"`
	Cycles    Number `json:"cycles"`
	Nanos     Number `json:"ns"`
	Error     Number `json:"error"` // in cycles: half of the range of the middle half of the samples
	Why       string `json:"why,omitempty"`
}

// A Number is a measured number, or NaN, which is null in JSON.
type Number float64

var unknown = Number(math.NaN())

// MarshalJSON writes NaN as null.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as NaN.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = unknown
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// mostJSON bounds the bytes that Read reads: a result has some tens of kilobytes.
const mostJSON = 4 << 20

// Read reads a Result from JSON. An unknown member, or another document, is an
// error.
func Read(r io.Reader) (*Result, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostJSON+1))
	if err != nil {
		return nil, err
	}
	if len(text) > mostJSON {
		return nil, fmt.Errorf("larger than %d bytes: not a calibration", mostJSON)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("not the JSON of a calibration: %w", err) // further data is an error, too
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("the document's schema is %q, not %q", head.Schema, Schema)
	}
	var result Result
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&result); err != nil {
		return nil, fmt.Errorf("not a calibration: %w", err)
	}
	return &result, result.check()
}

// check refuses results that no calibration has and that cannot be printed.
func (r *Result) check() error {
	for i, p := range r.Curve {
		if p.Bytes <= 0 || i > 0 && p.Bytes <= r.Curve[i-1].Bytes {
			return fmt.Errorf("curve: point %d: sizes have to grow", i)
		}
		if !(p.Cycles >= 0) && p.Why == "" {
			return fmt.Errorf("curve: point %d: neither a latency nor a reason for having none", i)
		}
	}
	for _, l := range r.Levels {
		if l.Why == "" && !(l.Cycles > 0 && l.Nanos > 0) {
			return fmt.Errorf("level %s: neither a latency nor a reason for having none", l.Name)
		}
	}
	for _, f := range r.Costs {
		if f.Why == "" && math.IsNaN(float64(f.Value)) {
			return fmt.Errorf("%s: neither a value nor a reason for having none", f.Name)
		}
	}
	if f := r.Peak; f != nil && f.Why == "" && !(f.Value > 0) {
		return errors.New("flop_peak: neither a value nor a reason for having none")
	}
	return nil
}
