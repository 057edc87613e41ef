package report

import (
	"fmt"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/page"
)

// A jsonHotspots is where the time went.
type jsonHotspots struct {
	Of      string       `json:"of"`
	Seconds *page.Number `json:"seconds"`
	States  []jsonState  `json:"states"`
	Places  []jsonPlace  `json:"places"`
	Others  page.Number  `json:"others"`
	Left    int          `json:"functions_left"`
	Samples int64        `json:"samples"`
	Takes   float64      `json:"simulation_takes_s,omitempty"`
}

type jsonState struct {
	State  string       `json:"state"`
	Share  page.Number  `json:"share"`
	Error  *page.Number `json:"error,omitempty"`
	Events *page.Number `json:"events,omitempty"`
	What   string       `json:"what,omitempty"`
}

type jsonPlace struct {
	Function string       `json:"function,omitempty"`
	Module   string       `json:"module,omitempty"`
	Kernel   bool         `json:"kernel,omitempty"`
	File     string       `json:"file,omitempty"`
	Line     int          `json:"line,omitempty"`
	Addr     string       `json:"addr"`
	Share    page.Number  `json:"share"`
	Error    *page.Number `json:"error,omitempty"`
	Samples  int64        `json:"samples"`
	Caller   *jsonCaller  `json:"caller,omitempty"`
	Loop     *jsonLoop    `json:"loop,omitempty"`
	Cause    *jsonCause   `json:"cause,omitempty"`
}

type jsonLoop struct {
	From         string      `json:"from"`
	To           string      `json:"to"`
	First        int         `json:"first,omitempty"`
	Last         int         `json:"last,omitempty"`
	Instructions int         `json:"instructions"`
	Share        page.Number `json:"share"`
}

type jsonCause struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	Try  string `json:"try,omitempty"`
}

// hotspots are those of an account, nil for none.
func hotspots(h *account.Hotspots) *jsonHotspots {
	if h == nil {
		return nil
	}
	out := &jsonHotspots{Of: h.Whole.String(), Seconds: page.Known(h.Seconds), States: []jsonState{}, Places: []jsonPlace{}, Others: page.Number(h.Others),
		Left: h.Left, Samples: h.Samples, Takes: h.Takes.Seconds()}
	for _, s := range h.States {
		o := jsonState{State: s.State, Share: page.Number(s.Share), Error: page.Known(s.Error), Events: page.Known(s.Events)}
		if o.Events != nil {
			o.What = s.What
		}
		out.States = append(out.States, o)
	}
	for i := range h.Places {
		p := &h.Places[i]
		o := jsonPlace{Function: p.Function, Module: p.Module, Kernel: p.Kernel, File: p.File, Line: p.Line, Addr: fmt.Sprintf("%#x", p.Addr),
			Share: page.Number(p.Share), Error: page.Known(p.Error), Samples: p.Samples, Caller: callerOf(p.Caller, p.CallerShare)}
		if l := p.Loop; l != nil {
			o.Loop = &jsonLoop{fmt.Sprintf("%#x", l.Start), fmt.Sprintf("%#x", l.End), l.First, l.Last, l.Instructions, page.Number(l.Share)}
		}
		if p.Cause != nil {
			o.Cause = &jsonCause{p.Cause.Kind, p.Cause.Text, p.Cause.Try}
		}
		out.Places = append(out.Places, o)
	}
	return out
}
