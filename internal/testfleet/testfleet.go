// Package testfleet is a simulated fleet with a known truth, for tests and measurements. It
// writes the counters of its hosts into a real store, by the protocol remote write. It has
// times of its own: an hour takes as long as the store needs.
package testfleet

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// A Fleet is hosts with services. Every host runs every service.
type Fleet struct {
	Hosts, Services int
	Levels          int // 1 or 2
	Spread          float64
	Seed            uint64
	// Worse is how much more a canary of one service loses in Memory_Bound, as a part of that.
	// Every CanaryEvery-th ten of hosts has the canary.
	Worse        float64
	WorseService int
	WorseStep    uint64 // the canary begins with this step
	CanaryEvery  int
	Versions     [2]string // of the model: of most hosts, and of every tenth; "" is one for all
	LostEvery    int       // every such host sends nothing
	// RestartEvery is how many hosts have one whose exporter begins anew in RestartStep. New
	// has the counters of all hosts begin in the first step, as 0.
	RestartEvery int
	RestartStep  uint64
	New          bool
	cumulative   []float64
	steps        uint64
	before       time.Time
	Written      int // samples
}

// Nodes are the nodes that are exported, by level. Retiring is what the others leave.
var Nodes = [2][]string{{"Frontend_Bound", "Bad_Speculation", "Backend_Bound", "Retiring"}, {"Memory_Bound", "Core_Bound"}}

// A CPU is a processor, and in how many of ten hosts it is.
type CPU struct {
	Name         string
	Width, Hertz float64
	Of10         int
}

// CPUs are the processors, with their widths and clocks.
var CPUs = []CPU{{"skylakex", 4, 2.6e9, 5}, {"icelakex", 5, 2.9e9, 3}, {"sapphirerapids", 6, 3.1e9, 2}}

// An OwnCounter is one of a host itself: its labels, and how much it grows in a second.
type OwnCounter struct {
	Name   string
	Labels [][2]string // behind the others
	Rate   float64
}

// Coverage is the part of the time that the counters ran.
const Coverage = 0.25

// Own are the counters of each host itself.
var Own = []OwnCounter{
	{series.Enabled, nil, 16}, {series.Running, nil, 16 * Coverage}, {series.Cost, nil, 0.001},
	{series.Windows, [][2]string{{series.Result, series.OK}}, 0.09}, {series.Windows, [][2]string{{series.Result, series.Lost}}, 0.01},
}

// Version is that of the model.
const Version = "5.01"

// A Truth is what a service does on one processor: the shares of slots, and busy processors
// on each host.
type Truth struct {
	Shares map[string]float64
	CPUs   float64
}

// draw is a number from 0 to 1 that depends on its arguments alone.
func (f *Fleet) draw(parts ...uint64) float64 {
	x := f.Seed*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	for _, p := range parts {
		x ^= p + 0x9e3779b97f4a7c15 + x<<6 + x>>2
		x ^= x >> 30
		x *= 0xbf58476d1ce4e5b9
		x ^= x >> 27
		x *= 0x94d049bb133111eb
		x ^= x >> 31
	}
	return float64(x>>11) / (1 << 53)
}

// even is a number with mean 0 and standard deviation 1.
func (f *Fleet) even(parts ...uint64) float64 { return (2*f.draw(parts...) - 1) * math.Sqrt(3) }

// CPU is the index of a host's processor.
func (f *Fleet) CPU(host int) int {
	at := host % 10
	for i, c := range CPUs {
		if at -= c.Of10; at < 0 {
			return i
		}
	}
	return 0
}

// Canary reports whether a host has the canary.
func (f *Fleet) Canary(host int) bool { return f.CanaryEvery > 0 && (host/10)%f.CanaryEvery == 0 }

// Lost reports whether a host sends nothing.
func (f *Fleet) Lost(host int) bool { return f.LostEvery > 0 && host%f.LostEvery == f.LostEvery-1 }

// Truth is what a service does on a processor.
func (f *Fleet) Truth(service, cpu int, canary bool) Truth {
	u := func(k int) float64 { return f.draw(1, uint64(service), uint64(cpu), uint64(k)) }
	t := Truth{Shares: map[string]float64{"Frontend_Bound": 0.05 + 0.15*u(0), "Bad_Speculation": 0.02 + 0.08*u(1), "Memory_Bound": 0.15 + 0.25*u(2), "Core_Bound": 0.05 + 0.1*u(3)}}
	if canary && service == f.WorseService {
		t.Shares["Memory_Bound"] *= 1 + f.Worse
	}
	t.Shares["Backend_Bound"] = t.Shares["Memory_Bound"] + t.Shares["Core_Bound"]
	t.Shares["Retiring"] = 1 - t.Shares["Frontend_Bound"] - t.Shares["Bad_Speculation"] - t.Shares["Backend_Bound"]
	t.CPUs = 4 / float64(1+service) // as a few services have most of the load
	return t
}

// amounts are what a host and service add in some seconds: slots, slots by node in the order
// of Nodes, and seconds of processors.
func (f *Fleet) amounts(t *Truth, host, service int, seconds float64, step uint64, out []float64) (slots, cpu float64) {
	h, s := uint64(host), uint64(service)
	c := &CPUs[f.CPU(host)]
	load := t.CPUs * (1 + 0.4*f.even(2, h, s)) * (1 + 0.1*f.even(3, h, s, step))
	cpu = load * seconds
	slots = cpu * c.Hertz * c.Width
	share := func(k int, name string) float64 {
		return t.Shares[name] * (1 + f.Spread*f.even(4, h, s, uint64(k)) + f.Spread*f.even(5, h, s, uint64(k), step)/2)
	}
	fe, bad, mem, core := share(0, "Frontend_Bound"), share(1, "Bad_Speculation"), share(2, "Memory_Bound"), share(3, "Core_Bound")
	for i, v := range []float64{fe, bad, mem + core, 1 - fe - bad - mem - core, mem, core} {
		out[i] = v * slots
	}
	return slots, cpu
}

// Series is how many series the fleet has.
func (f *Fleet) Series() int {
	n := 0
	for host := range f.Hosts {
		n++ // up
		if !f.Lost(host) {
			n += 1 + len(Own) + f.Services*f.each()
		}
	}
	return n
}

// each is the series of a host's service: nodes and wholes of the levels, and its time.
func (f *Fleet) each() int {
	n := len(Nodes[0]) + 2
	if f.Levels > 1 {
		n += len(Nodes[1]) + 1
	}
	return n
}

// Step writes the counters of all hosts at a time.
func (f *Fleet) Step(to *Writer, at time.Time) error {
	each := f.each()
	if f.cumulative == nil {
		f.cumulative = make([]float64, f.Hosts*f.Services*each)
		f.before = at
		if !f.New {
			f.before = at.Add(-time.Minute)
			f.history()
		}
	}
	seconds, step := at.Sub(f.before).Seconds(), f.steps
	f.before = at
	f.steps++
	truths := make([][2]Truth, f.Services*len(CPUs))
	for s := range f.Services {
		for c := range CPUs {
			truths[s*len(CPUs)+c] = [2]Truth{f.Truth(s, c, false), f.Truth(s, c, true)}
		}
	}
	var amounts [6]float64
	p := newPieces(f)
	for host := range f.Hosts {
		if f.Lost(host) {
			to.add(p.up(host), 0, at)
			continue
		}
		to.add(p.up(host), 1, at)
		to.add(p.info(host), 1, at)
		past := seconds * float64(f.steps)
		for _, own := range Own {
			to.add(p.own(host, own), own.Rate*past, at)
		}
		c := f.CPU(host)
		side := 0
		if f.Canary(host) && step >= f.WorseStep {
			side = 1
		}
		for s := range f.Services {
			t := &truths[s*len(CPUs)+c][side]
			slots, cpu := f.amounts(t, host, s, seconds, step, amounts[:])
			sum := f.cumulative[(host*f.Services+s)*each:][:each]
			if f.restarts(host) {
				clear(sum)
			}
			k := 0
			put := func(prefix []byte, v float64) {
				sum[k] += v
				to.add(prefix, sum[k], at)
				k++
			}
			for i := range Nodes[0] {
				put(p.node(host, s, 0, i), amounts[i])
			}
			put(p.whole(host, s, 0), slots)
			put(p.cpu(host, s), cpu)
			if f.Levels > 1 {
				for i := range Nodes[1] {
					put(p.node(host, s, 1, i), amounts[len(Nodes[0])+i])
				}
				put(p.whole(host, s, 1), slots)
			}
			if to.err != nil {
				return to.err
			}
		}
	}
	to.flush()
	f.Written += to.samples
	to.samples = 0
	return to.err
}

// pieces are the labels of series, as remote write has them. What many series share is
// encoded once.
type pieces struct {
	f    *Fleet
	buf  []byte
	kept map[piece][2][]byte // before and behind the label instance
}

// A piece names labels that many series share.
type piece struct {
	metric, group, node string
	cpu, service        int
	version             string
	canary              bool
}

func newPieces(f *Fleet) *pieces { return &pieces{f: f, kept: map[piece][2][]byte{}} }

// label appends a label of a series.
func label(b []byte, name, value string) []byte {
	n := 2 + len(name) + 1 + len(binary.AppendUvarint(nil, uint64(len(value)))) + len(value)
	b = append(b, 0x0a)
	b = binary.AppendUvarint(b, uint64(n))
	b = append(b, 0x0a, byte(len(name)))
	b = append(b, name...)
	b = append(b, 0x12)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

func (p *pieces) version(host int) string {
	if p.f.Versions[1] != "" && host%10 == 3 {
		return p.f.Versions[1]
	}
	return cmp.Or(p.f.Versions[0], Version)
}

// account returns the labels of a series of an account.
func (p *pieces) account(metric, group, node string, host, service int) []byte {
	k := piece{metric, group, node, p.f.CPU(host), service, p.version(host), p.f.Canary(host)}
	parts, ok := p.kept[k]
	if !ok {
		parts = k.encode()
		p.kept[k] = parts
	}
	p.buf = append(p.buf[:0], parts[0]...)
	p.buf = label(p.buf, "instance", Instance(host))
	p.buf = append(p.buf, parts[1]...)
	return p.buf
}

// encode encodes the labels of a piece in their order.
func (k *piece) encode() (parts [2][]byte) {
	b := label(nil, "__name__", k.metric)
	b = label(b, series.Processor, CPUs[k.cpu].Name)
	if k.group != "" {
		b = label(b, series.Group, k.group)
	}
	parts[0] = b
	b = label(nil, "job", "cyclestack")
	if k.group == "" {
		b = label(label(b, series.Method, series.OS), series.Mode, "user")
	} else {
		b = label(label(label(b, series.Method, series.PMU), series.Model, "tma"), series.ModelVersion, k.version)
	}
	b = label(b, series.Namespace, "ns"+strconv.Itoa(k.service%3))
	if k.node != "" {
		b = label(b, series.Node, k.node)
	}
	b = label(label(b, series.Scope, series.Workload), series.Service, Service(k.service))
	version := "stable"
	if k.canary {
		version = "canary"
	}
	parts[1] = label(b, "version", version)
	return parts
}

var groups = [2]string{"l1", "l2"}

var levels = [2]string{series.Slots.Node(1), series.Slots.Node(2)}

func (p *pieces) node(host, service, level, i int) []byte {
	return p.account(levels[level], groups[level], Nodes[level][i], host, service)
}

func (p *pieces) whole(host, service, level int) []byte {
	return p.account(series.Slots.Whole, groups[level], "", host, service)
}

func (p *pieces) cpu(host, service int) []byte { return p.account(series.CPU, "", "", host, service) }

// own returns the labels of a host's own counter.
func (p *pieces) own(host int, c OwnCounter) []byte {
	b := label(label(nil, "__name__", c.Name), series.Processor, CPUs[p.f.CPU(host)].Name)
	b = label(b, series.Group, groups[0])
	b = label(label(b, "instance", Instance(host)), "job", "cyclestack")
	b = label(b, series.Method, series.PMU)
	for _, l := range c.Labels {
		b = label(b, l[0], l[1])
	}
	return b
}

func (p *pieces) up(host int) []byte {
	return label(label(label(nil, "__name__", "up"), "instance", Instance(host)), "job", "cyclestack")
}

func (p *pieces) info(host int) []byte {
	b := label(label(nil, "__name__", series.ModelInfo), series.Processor, CPUs[p.f.CPU(host)].Name)
	b = label(label(b, "instance", Instance(host)), "job", "cyclestack")
	return label(label(label(b, series.Method, series.PMU), series.Model, "tma"), series.ModelVersion, p.version(host))
}

// Instance is the name of a host.
func Instance(host int) string { return fmt.Sprintf("host-%05d:9766", host) }

// Service is the name of a service.
func Service(s int) string { return fmt.Sprintf("service-%02d", s) }
