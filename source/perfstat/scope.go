package perfstat

import (
	"bytes"

	"github.com/cyclestack/cyclestack/counts"
)

// parseScope reads what perf prints before a count to say where it was
// counted: "CPU3", "S0-D0-C1" (before 5.3 "S0-C1"), "S0-D0-CLS2",
// "S0-D0-L3-ID4", "S0-D0", "S0", "N1", or a thread, "bash-1234". The label of
// the scope is left to the caller.
func parseScope(id []byte) (s counts.Scope, ok bool) {
	s = counts.RunScope("")
	if rest, found := bytes.CutPrefix(id, []byte("CPU")); found {
		if n, whole := smallNumber(rest); whole {
			s.Kind, s.CPU, s.CPUs = counts.CPU, n, 1
			return s, true
		}
	}
	if n, whole := smallNumber(bytes.TrimPrefix(id, []byte("N"))); whole && id[0] == 'N' {
		s.Kind, s.Node = counts.Node, n
		return s, true
	}
	if parsePlace(id, &s) {
		return s, true
	}
	return parseThread(id)
}

// parsePlace reads the parts of "S0-D0-C1" into s.
func parsePlace(id []byte, s *counts.Scope) bool {
	if len(id) < 2 || id[0] != 'S' || !isDigit(id[1]) {
		return false
	}
	for len(id) > 0 {
		part, rest, _ := bytes.Cut(id, []byte("-"))
		letters := 0
		for letters < len(part) && isLetter(part[letters]) {
			letters++
		}
		n, whole := smallNumber(part[letters:])
		if !whole {
			return false
		}
		switch string(part[:letters]) {
		case "S":
			s.Kind, s.Socket = counts.Socket, n
		case "D":
			s.Kind, s.Die = counts.Die, n
		case "C":
			s.Kind, s.Core = counts.Core, n
		case "CLS":
			s.Kind = counts.Cluster
		case "L", "ID":
			s.Kind = counts.Cache
		default:
			return false
		}
		id = rest
	}
	return true
}

// parseThread reads "comm-tid". The name can be anything, dashes and blanks
// included.
func parseThread(id []byte) (s counts.Scope, ok bool) {
	s = counts.RunScope("")
	i := bytes.LastIndexByte(id, '-')
	if i <= 0 {
		return s, false
	}
	n, whole := smallNumber(id[i+1:])
	if !whole {
		return s, false
	}
	s.Kind, s.TID = counts.Thread, n
	return s, true
}

// isPlace reports whether a scope's form is one that perf prints with the
// number of logical processors summed into it.
func isPlace(id []byte) bool {
	if len(id) < 2 || !isDigit(id[1]) {
		return false
	}
	return id[0] == 'S' || id[0] == 'N'
}

// smallNumber reads a whole field of up to nine digits.
func smallNumber(b []byte) (n int, ok bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	for _, c := range b {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
