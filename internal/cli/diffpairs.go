package cli

import (
	"cmp"
	"os"
	"slices"

	"github.com/cyclestack/cyclestack/source/perfdata"
)

// turnsEnough is the number of runs of each side from which on they are compared in
// pairs although nobody said so: with fewer, pairs tell less than they are worth.
const turnsEnough = 8

// byTurns reports whether the recordings of the sides were made by turns, as
// recordings of samples tell by their times: each old one beside a new one. It then
// puts each side into the order of time, so that neighbours have the same number.
func byTurns(sides *[2]side) bool {
	n := len(sides[0].files)
	if n < turnsEnough || n != len(sides[1].files) {
		return false
	}
	type recording struct {
		side  int
		file  string
		times [2]uint64
	}
	var list []recording
	for i := range sides {
		for _, file := range sides[i].files {
			times, ok := sampleTimes(file)
			if !ok {
				return false
			}
			list = append(list, recording{i, file, times})
		}
	}
	slices.SortStableFunc(list, func(a, b recording) int { return cmp.Compare(a.times[0], b.times[0]) })
	var ordered [2][]string
	for i, r := range list {
		if i > 0 && r.times[0] < list[i-1].times[1] || i%2 == 1 && r.side == list[i-1].side {
			return false // at the same time, or not by turns
		}
		ordered[r.side] = append(ordered[r.side], r.file)
	}
	sides[0].files, sides[1].files = ordered[0], ordered[1]
	return true
}

// sampleTimes returns the times of the first and the last sample of a recording, by
// the machine's clock, as its header has them.
func sampleTimes(file string) (times [2]uint64, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return times, false
	}
	defer f.Close()
	r, err := perfdata.NewReader(f, file, perfdata.Options{})
	if err != nil {
		return times, false
	}
	defer r.Close()
	times = r.Features().SampleTime
	return times, times != [2]uint64{}
}
