package perfevent

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A variation disturbs the kernel's rotation of multiplexed groups. The kernel keeps their
// order and the length of their slots. If a program has a loop as long as a rotation, each
// group sees its own part of the loop. The scaled counts are then wrong.
//
// So one group, chosen at random, is disabled for a rotation of the others on average.
// After two slots on average it is the next one. Of many groups, a shorter time would
// seldom change who sees which part of a loop. The kernel puts a group on the counters
// at once when it is enabled, if it has waited longest. That changes which groups see
// which part of a loop. All groups are disabled equally often, so none sees more of the beginnings of
// slots than of their ends.
//
// A group that is disabled has no time enabled. So that time is taken from an event that
// is always counted in the same place.
type variation struct {
	rotation time.Duration // 0: groups are not varied
	groups   []int         // those that are multiplexed, as indexes of Spec.Groups
	off      int           // the group that is disabled, -1 for none
	next     time.Time     // when that changes
	began    time.Time
	spent    time.Duration // processor time in system calls
}

// varyMost is the largest share of the time that may be spent on it. It is exceeded where
// many threads or processors are counted: there the kernel's order stays. The rotations of
// many processors are not in step.
const varyMost = 0.01

// varyFirst is left out of that share: the first calls are slow.
const varyFirst = 5 * time.Millisecond

// startVarying begins to vary the groups that the first tables show to be multiplexed.
func (s *session) startVarying(now time.Time) {
	v := &s.vary
	for i := range s.opener.sets {
		set := &s.opener.sets[i]
		if set.siblings == nil || set.siblings.group < 0 || set.pinned || set.running >= set.enabled {
			continue
		}
		if pmu := set.siblings.pmu; pmu != nil && pmu.Uncore {
			continue
		}
		if !slices.Contains(v.groups, set.siblings.group) {
			v.groups = append(v.groups, set.siblings.group)
		}
	}
	if len(v.groups) < 2 {
		v.groups = nil
		return
	}
	v.off, v.began = -1, now
	s.reader.varied = v.groups
	v.pause(now)
}

// pause sets the time of the next change. Times are distributed exponentially, so that no
// loop keeps its place in them.
func (v *variation) pause(now time.Time) {
	slot := v.rotation / time.Duration(len(v.groups))
	mean := 2 * slot
	if v.off >= 0 {
		mean = v.rotation - slot
	}
	v.next = now.Add(time.Duration(float64(mean) * min(3, rand.ExpFloat64())))
}

// due returns when a wait until some time must end for the next change.
func (v *variation) due(until time.Time) time.Time {
	if len(v.groups) > 0 && (until.IsZero() || v.next.Before(until)) {
		return v.next
	}
	return until
}

// turn disables a group, or enables the one that is disabled, if it is time.
func (s *session) turn() {
	v := &s.vary
	now := time.Now()
	if len(v.groups) == 0 || now.Before(v.next) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	busy := threadTime()
	if v.off >= 0 {
		s.control(v.off, unix.PERF_EVENT_IOC_ENABLE)
		v.off = -1
	} else {
		// Nothing comes on the counters for a group that is disabled, until another is
		// enabled. So one of the others is enabled again.
		i, k := rand.IntN(len(v.groups)), rand.IntN(len(v.groups)-1)
		if k >= i {
			k++
		}
		v.off = v.groups[i]
		s.control(v.off, unix.PERF_EVENT_IOC_DISABLE)
		s.control(v.groups[k], unix.PERF_EVENT_IOC_DISABLE)
		s.control(v.groups[k], unix.PERF_EVENT_IOC_ENABLE)
	}
	v.spent += threadTime() - busy
	end := time.Now()
	if v.off < 0 && float64(v.spent-varyFirst) > varyMost*float64(end.Sub(v.began)) {
		v.groups = nil // what was disabled is not scaled by its own time, as before
		return
	}
	v.pause(end)
}

// threadTime returns the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// control enables or disables a group in all places. A task may have ended.
func (s *session) control(group int, request uint) {
	for i := range s.opener.sets {
		set := &s.opener.sets[i]
		if set.siblings == nil || set.siblings.group != group {
			continue
		}
		_ = control(set.leader, request)
		for k := range set.repeats {
			_ = control(set.repeats[k].leader, request)
		}
	}
}
