package samples

import (
	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/perffile"
	"github.com/cyclestack/cyclestack/profile"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// userStacks unwinds the copies of user stacks in samples.
type userStacks struct {
	unwinder *unwinder // nil if samples have no copies
	state    userState
	calls    []userCall
}

// begin looks at whether there are copies of stacks.
func (u *userStacks) begin(s *Stacks) {
	for _, e := range s.r.in.Events() {
		if e.SampleType&perffile.SampleStackUser != 0 && u.unwinder == nil {
			u.unwinder = newUnwinder(s.r.in.Features().Arch, s.spaces, s.r.symbols)
		}
	}
}

// unwound adds the user's part of a callchain from the copy of the stack. It returns what
// that lacks.
func (s *Stacks) unwound(rec *perfdata.Sample, time uint64) flaws {
	u := &s.unwind
	if u.unwinder == nil {
		return 0
	}
	abi, regs := rec.RegsUser()
	if abi == perffile.RegsNone || !rec.Has(perffile.SampleStackUser) {
		return 0 // a thread of the kernel has no user
	}
	u.state = userState{Wide: abi == perffile.Regs64, Mask: rec.Event().RegsUser, Registers: regs.AppendTo(u.state.Registers[:0]), Stack: rec.StackUser()}
	var end stackEnd
	u.calls, end = u.unwinder.unwind(time, rec.PID(), &u.state, u.calls[:0])
	calls := u.calls
	if profile.Mode(rec.Mode()) == profile.User && len(calls) > 0 {
		calls = calls[1:] // it is where the sample was taken
	}
	for _, c := range calls {
		s.chain = append(s.chain, linkTo(c.Addr, profile.User, c.Exact))
	}
	switch end {
	case stackCut, stackUnlimited:
		s.chain = append(s.chain, link{mode: truncatedMode})
		return 1 << flawCut
	case stackUnknown:
		return 1 << flawUnknown
	case stackForeign:
		return 1 << flawForeign
	}
	return 0
}

// unwoundNotes says which stacks are not complete.
func (s *Stacks) unwoundNotes() (out []counts.Note) {
	if n := s.flawed[flawForeign]; n > 0 {
		out = append(out, counts.Notef("%d samples have a copy of the user's stack that is not unwound (only for 64-bit x86 and Arm): their callers in the program are missing", n).With(counts.Fix{Action: counts.RecordCallers}))
	}
	if n := s.flawed[flawCut]; n > 0 {
		out = append(out, counts.Notef("%d stacks are longer than their copies: their outermost callers are missing (record --call-graph dwarf,65528 copies most)", n))
	}
	if n := s.flawed[flawUnknown]; n > 0 {
		out = append(out, counts.Notef("%d stacks end where no file says how to unwind further: outer callers are missing", n))
	}
	return out
}
