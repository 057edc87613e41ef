package model

import (
	"strconv"
	"strings"
)

// LatencyThreshold returns the threshold, in cycles, of an event that counts
// loads slower than it: MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4, or any event with
// an ldlat term.
func LatencyThreshold(spelling string) (cycles float64, ok bool) {
	ref, err := ParseEvent(spelling)
	if err != nil {
		return 0, false
	}
	for _, t := range ref.Terms {
		if t.Key == "ldlat" && t.Text == "" {
			return float64(t.Value), true
		}
	}
	for _, name := range []string{ref.Name, ref.Label} {
		const mark = "load_latency_gt_"
		if i := strings.LastIndex(fold(name), mark); i >= 0 {
			if n, err := strconv.ParseUint(name[i+len(mark):], 10, 32); err == nil {
				return float64(n), true
			}
		}
	}
	return 0, false
}
