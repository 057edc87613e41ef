package accounts

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// lineMost bounds the length of a line.
const lineMost = 16 << 20

// A stream reads accounts line by line.
type stream struct {
	src     *bufio.Reader
	file    string
	at      int64 // the offset of line
	behind  int64 // the offset behind line
	line    []byte
	columns columns
	next    *account // was read, and begins the next table
	ended   bool
}

// columns are what the counts of the lines after it are of.
type columns struct {
	Events []struct {
		Event, As, Unit string
		Named           bool
		Group           int
	}
	Notes []string
}

// A streamLine is any line but the first.
type streamLine struct {
	Columns   *columns
	Scope     *scope
	Counts    []*float64
	Coverage  []*float64 `json:"count_coverage"`
	Samples   []int64
	Uncounted map[string][]int
	Notes     []string
}

// bad returns the error of a line.
func (s *stream) bad(format string, args ...any) error {
	return &Error{s.file, s.at + 1, fmt.Sprintf(format, args...)}
}

// read reads the next line that is not empty. Its error is io.EOF at the end.
func (s *stream) read(to any) error {
	for {
		s.line, s.at = s.line[:0], s.behind
		for {
			part, err := s.src.ReadSlice('\n')
			s.line, s.behind = append(s.line, part...), s.behind+int64(len(part))
			if len(s.line) > lineMost {
				return s.bad("a line of more than %d MiB", lineMost>>20)
			}
			if err == nil || err == io.EOF && len(s.line) > 0 {
				break
			}
			if err == io.EOF {
				return err
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return fmt.Errorf("%s: %w", s.file, err)
			}
		}
		if len(strings.TrimSpace(string(s.line))) > 0 {
			break
		}
	}
	err := json.Unmarshal(s.line, to)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return &Error{s.file, s.at + kind.Offset, fmt.Sprintf("%s is a %s", strings.ToLower(kind.Field), kind.Value)}
	case errors.As(err, &syntax) && s.line[len(s.line)-1] != '\n':
		return &Error{s.file, s.behind, "the last line is not complete"}
	case errors.As(err, &syntax):
		return &Error{s.file, s.at + syntax.Offset, syntax.Error()}
	case err != nil:
		return s.bad("%v", err)
	}
	return nil
}

// head reads the first line.
func (s *stream) head(doc *document) error {
	switch err := s.read(doc); {
	case err != nil:
		return err
	case doc.Schema != streamSchema:
		return s.bad("its schema is %q, not %s", doc.Schema, streamSchema)
	case len(doc.Accounts) > 0:
		return s.bad("a stream has no accounts in its first line")
	}
	return nil
}

// nextOfStream makes the next table of a stream.
func (r *Reader) nextOfStream() bool {
	s := r.lines
	var list []account
	for {
		if s.next == nil {
			if r.err = r.nextAccount(); r.err != nil {
				return false
			}
		}
		if s.ended || len(list) > 0 && !joins(&list[len(list)-1].Scope, &s.next.Scope) {
			break
		}
		if cells := (len(list) + 1) * len(s.columns.Events); cells > cellsMost {
			r.err = s.bad("more than %d counts", cellsMost)
			return false
		}
		list, s.next = append(list, *s.next), nil
	}
	if len(list) == 0 || !r.use(list) {
		return false
	}
	// Parts of the first interval are told from those of a run by what follows.
	r.table.Interval = r.table.Interval || !list[0].Scope.whole() && s.next != nil && value(s.next.Scope.Start) > r.table.Start
	return true
}

// nextAccount reads lines up to the next account.
func (r *Reader) nextAccount() error {
	s := r.lines
	for s.next == nil {
		line := &streamLine{}
		switch err := s.read(line); {
		case err == io.EOF:
			s.ended = true
			return nil
		case err != nil:
			return err
		case line.Columns != nil:
			s.columns = *line.Columns
		case line.Scope == nil:
			return s.bad("a line that has neither columns nor a scope")
		default:
			a, err := s.account(line)
			if err != nil {
				return err
			}
			r.leaveTimes(a)
			s.next = a
		}
	}
	return nil
}

// account returns a line as a document has it.
func (s *stream) account(line *streamLine) (*account, error) {
	events, n := s.columns.Events, len(line.Counts)
	switch {
	case len(events) > 0 && n > len(events) && n%len(events) == 0:
		return nil, &Error{s.file, s.at + 1, "its counts are those of the logical processors of a core, which cannot be read back"}
	case n != len(events), line.Coverage != nil && len(line.Coverage) != n, line.Samples != nil && len(line.Samples) != n:
		return nil, s.bad("%d counts, %d coverages and %d numbers of samples of %d events", n, len(line.Coverage), len(line.Samples), len(events))
	}
	states := make([]string, n)
	for state, list := range line.Uncounted {
		for _, i := range list {
			if i < 0 || i >= n {
				return nil, s.bad("event %d of %d is %s", i, n, state)
			}
			states[i] = state
		}
	}
	a := &account{Scope: *line.Scope, Notes: append(append([]string{}, s.columns.Notes...), line.Notes...)}
	all := 1.0
	for i, e := range events {
		c := count{Event: e.Event, As: e.As, Unit: e.Unit, group: e.Group, Value: line.Counts[i], State: states[i], Coverage: &all}
		if c.Value == nil && c.State == "" {
			continue // not in the recording
		}
		if line.Coverage != nil {
			c.Coverage = line.Coverage[i]
		}
		if line.Samples != nil {
			c.Samples = line.Samples[i]
		}
		if a.Counts = append(a.Counts, c); e.Named {
			a.Events = append(a.Events, c)
		}
	}
	return a, nil
}
