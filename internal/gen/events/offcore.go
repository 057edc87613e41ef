package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Offcore response events are a product: a request is ORed with a response, and
// the vendor lists up to all pairs of them (CLX: 14 requests and 72 responses).
// Where a list is nearly complete the table has the factors instead, in one row:
//
//	OCR.{DEMAND_DATA_RD=0x1|DEMAND_RFO=0x2}.{ANY_RESPONSE=0x10000|L3_HIT.SNOOP_HITM=0x10003c0000}
//
// stands for four events, among them OCR.DEMAND_RFO.ANY_RESPONSE with config1
// 0x10002.

// smallestMatrix is the least number of events that a product has in a row of its
// own; fewer are easier to read one by one.
const smallestMatrix = 12

// A matrix is the product of requests and responses that a row stands for.
type matrix struct {
	prefix              string // "OCR", "OFFCORE_RESPONSE"
	requests, responses []factor
}

// A factor is one request or one response with its bits of config1.
type factor struct {
	name string
	bits uint64
}

func (m matrix) String() string {
	list := func(fs []factor) string {
		var parts []string
		for _, f := range fs {
			parts = append(parts, f.name+"="+hex(f.bits))
		}
		return "{" + strings.Join(parts, "|") + "}"
	}
	return m.prefix + "." + list(m.requests) + "." + list(m.responses)
}

// expand returns the events that a row stands for.
func (r row) expand() []*event {
	if r.matrix.prefix == "" {
		return []*event{r.event}
	}
	var out []*event
	for _, request := range r.matrix.requests {
		for _, response := range r.matrix.responses {
			e := *r.event
			e.name = fmt.Sprintf("%s.%s.%s", r.matrix.prefix, request.name, response.name)
			e.config1 = request.bits | response.bits
			out = append(out, &e)
		}
	}
	return out
}

// foldOffcore replaces offcore rows that are a product by matrix rows. Every
// row is either kept or stands in exactly one matrix.
func foldOffcore(rows []row) []row {
	var out []row
	groups := map[string][]row{}
	var order []string
	for _, r := range rows {
		if _, _, _, ok := offcoreParts(r.name); r.kind != "offcore_rsp" || !ok || len(r.aliases) > 0 {
			out = append(out, r)
			continue
		}
		cells := r.cells()
		cells[1] = "" // config1 may differ
		prefix, _, _, _ := offcoreParts(r.name)
		k := strings.Join(r.cpus, " ") + "\x00" + prefix + "\x00" + strings.Join(cells, "\x00")
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	for _, k := range order {
		out = append(out, foldGroup(groups[k])...)
	}
	return out
}

// foldGroup folds rows that differ in request, response and config1 only.
func foldGroup(rows []row) []row {
	requests, responses, ok := factors(rows)
	if !ok {
		return rows
	}
	// Requests with the same responses form a rectangle of the product.
	have := map[string][]string{} // request: responses, in order of appearance
	for _, r := range rows {
		_, request, response, _ := offcoreParts(r.name)
		have[request] = append(have[request], response)
	}
	same := map[string][]string{} // responses: requests
	for request, rs := range have {
		slices.Sort(rs)
		k := strings.Join(rs, "|")
		same[k] = append(same[k], request)
	}
	folded := map[string]bool{} // by request
	var out []row
	for _, k := range slices.Sorted(maps.Keys(same)) {
		names := strings.Split(k, "|")
		if len(same[k])*len(names) < smallestMatrix {
			continue
		}
		m := matrix{requests: pick(requests, same[k]), responses: pick(responses, names)}
		m.prefix, _, _, _ = offcoreParts(rows[0].name)
		e := *rows[0].event
		e.name, e.config1 = m.prefix, 0
		out = append(out, row{cpus: rows[0].cpus, event: &e, matrix: m})
		for _, request := range same[k] {
			folded[request] = true
		}
	}
	for _, r := range rows {
		if _, request, _, _ := offcoreParts(r.name); !folded[request] {
			out = append(out, r)
		}
	}
	return out
}

// factors finds the bits of every request and response, if config1 is the OR of them
// throughout: the bits of all values of a request, and those of all values of a response beyond
// all requests'.
func factors(rows []row) (requests, responses map[string]uint64, ok bool) {
	requests, responses = map[string]uint64{}, map[string]uint64{}
	and := func(m map[string]uint64, k string, v uint64) {
		if old, ok := m[k]; ok {
			v &= old
		}
		m[k] = v
	}
	for _, r := range rows {
		_, request, response, _ := offcoreParts(r.name)
		and(requests, request, r.config1)
		and(responses, response, r.config1)
	}
	common := ^uint64(0)
	for _, v := range requests {
		common &= v
	}
	for k := range responses {
		responses[k] &^= common
	}
	for _, r := range rows {
		_, request, response, _ := offcoreParts(r.name)
		if requests[request]|responses[response] != r.config1 {
			return nil, nil, false
		}
	}
	return requests, responses, true
}

// pick returns the factors of the given names, ordered by their bits.
func pick(bits map[string]uint64, names []string) []factor {
	var fs []factor
	for _, n := range names {
		fs = append(fs, factor{n, bits[n]})
	}
	slices.SortFunc(fs, func(a, b factor) int {
		if a.bits != b.bits {
			if a.bits < b.bits {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return fs
}

// offcoreParts splits "OCR.DEMAND_RFO.L3_HIT.SNOOP_HITM" into prefix, request
// and response.
func offcoreParts(name string) (prefix, request, response string, ok bool) {
	prefix, rest, ok1 := strings.Cut(name, ".")
	request, response, ok2 := strings.Cut(rest, ".")
	return prefix, request, response, ok1 && ok2
}
