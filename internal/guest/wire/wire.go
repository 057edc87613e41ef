// Package wire is what a guest's first process and the host say to each other: a file with the
// commands goes in, and events come out on the serial line, among the kernel's own lines.
package wire

import (
	"bytes"
	"encoding/json"
)

// JobFile is where the guest finds its [Job].
const JobFile = "/job.json"

// A Job is what a guest does before it powers itself off.
type Job struct {
	Argv []string
	Env  []string // in addition to PATH and HOME
}

// An Event is something that happened in a guest.
type Event struct {
	Output []byte `json:",omitempty"` // what the command printed, on either stream
	End    *End   `json:",omitempty"` // the last event
}

// An End is how the command ended.
type End struct {
	Status int    // its exit status; 128 and the signal's number if it was killed
	Error  string `json:",omitempty"` // why it could not be run
}

// mark begins a line with an event; nothing else prints it.
var mark = []byte("\x1eguest ")

// MaxOutput is how much output an event can have: lines are to be short enough
// for a terminal.
const MaxOutput = 1 << 10

// Encode returns an event as a line.
func Encode(e Event) ([]byte, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	// The kernel may have left a line of its own without an end.
	line := append([]byte{'\n'}, mark...)
	return append(append(line, data...), '\n'), nil
}

// Decode returns the event in a line, and whether there is one. A line that
// another has been printed into has none.
func Decode(line []byte) (Event, bool) {
	_, data, ok := bytes.Cut(line, mark)
	if !ok {
		return Event{}, false
	}
	var e Event
	if err := json.Unmarshal(bytes.TrimSpace(data), &e); err != nil {
		return Event{}, false
	}
	return e, true
}
