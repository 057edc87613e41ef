package top

import (
	"context"
	"fmt"
	"slices"

	"github.com/gdamore/tcell/v2"

	"github.com/cyclestack/cyclestack/counts"
)

// A feeding is a feed that runs.
type feeding struct {
	end  context.CancelFunc
	over chan struct{}
}

// watch has the feed make the accounts of the scope on top. The one before ends first, as
// counters and programs may be the same.
func (v *View) watch(ctx context.Context) {
	before := v.feed
	ctx, end := context.WithCancel(ctx)
	f := &feeding{end, make(chan struct{})}
	v.feed, v.now, v.past, v.ended, v.of = f, nil, map[string][]row{}, false, ""
	scope := v.scopes[len(v.scopes)-1]
	if before != nil {
		before.end()
	}
	go func() {
		defer close(f.over)
		if before != nil {
			<-before.over
		}
		if ctx.Err() != nil {
			return
		}
		v.over(f, v.fed(ctx, scope, f), ctx.Err() != nil)
	}()
}

// fed feeds, and returns a panic as an error: the terminal is put back first.
func (v *View) fed(ctx context.Context, s Scope, f *feeding) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return v.Feed(ctx, s, &writer{v: v, feeding: f})
}

// over takes the end of a feed. What cannot be watched leads back to where it was opened.
func (v *View) over(f *feeding, err error, stopped bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.wake()
	switch {
	case v.feed != f || stopped:
	case err == nil:
		v.ended = true
	case len(v.scopes) == 1:
		v.failed = err
	default:
		v.message = err.Error()
		v.scopes = v.scopes[:len(v.scopes)-1]
		v.feed = nil // the drawing goroutine begins again: see Run
	}
}

// Run shows the view until the user ends it, or the context ends. The error is that of the
// first feed: without it there is nothing to show.
func (v *View) Run(ctx context.Context, screen tcell.Screen) error {
	ctx, end := context.WithCancel(ctx)
	v.mu.Lock()
	v.wake = func() { _ = screen.PostEvent(tcell.NewEventInterrupt(nil)) }
	v.watch(ctx)
	v.mu.Unlock()
	defer v.stop(end)
	defer context.AfterFunc(ctx, func() { _ = screen.PostEvent(tcell.NewEventInterrupt(nil)) })()
	v.draw(screen)
	for {
		switch e := screen.PollEvent().(type) {
		case nil: // the screen has ended
			return nil
		case *tcell.EventResize:
			screen.Sync()
		case *tcell.EventInterrupt:
			if done, err := v.state(ctx); done {
				return err
			}
		case *tcell.EventError:
			return e
		case *tcell.EventKey:
			if v.key(ctx, e) {
				return nil
			}
		}
		v.draw(screen)
	}
}

// state reports whether the view has ended, and begins to feed again after a failure.
func (v *View) state(ctx context.Context) (done bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.feed == nil && v.failed == nil && ctx.Err() == nil {
		message := v.message
		v.watch(ctx)
		v.message = message
	}
	return v.failed != nil || ctx.Err() != nil, v.failed
}

// stop ends the feed, and waits for its end.
func (v *View) stop(end context.CancelFunc) {
	end()
	v.mu.Lock()
	f := v.feed
	v.mu.Unlock()
	if f != nil {
		<-f.over
	}
}

// key does what a key asks for, and reports whether that is the end.
func (v *View) key(ctx context.Context, e *tcell.EventKey) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.message = ""
	defer func(before int) {
		if v.selected != before {
			v.pointed = ""
		}
	}(v.selected)
	switch e.Key() {
	case tcell.KeyCtrlC, tcell.KeyCtrlD:
		return true
	case tcell.KeyDown:
		v.selected++
	case tcell.KeyUp:
		v.selected = max(0, v.selected-1)
	case tcell.KeyPgDn:
		v.selected += 10
	case tcell.KeyPgUp:
		v.selected = max(0, v.selected-10)
	case tcell.KeyHome:
		v.selected = 0
	case tcell.KeyEnd:
		v.selected = 1 << 20 // as far as there are lines: see draw
	case tcell.KeyEnter, tcell.KeyRight:
		v.open(ctx)
	case tcell.KeyEscape, tcell.KeyLeft, tcell.KeyBackspace, tcell.KeyBackspace2:
		v.back(ctx)
	case tcell.KeyTab:
		v.turn(ctx, 1)
	case tcell.KeyBacktab:
		v.turn(ctx, len(Views)-1)
	case tcell.KeyRune:
		return v.letter(ctx, e.Rune())
	}
	return false
}

func (v *View) letter(ctx context.Context, r rune) bool {
	switch {
	case r == 'q':
		return true
	case r == 'p' || r == ' ':
		v.paused = !v.paused
	case r == '+':
		v.level = min(9, v.level+1)
		v.deeper(ctx)
	case r == '-':
		v.level = max(1, v.level-1)
	case r == 'j':
		v.selected++
	case r == 'k':
		v.selected = max(0, v.selected-1)
	case r == 'w':
		v.message = v.keep()
	case r >= '1' && int(r-'1') < len(Views):
		v.divide(ctx, Views[r-'1'])
	}
	return false
}

// scope is what is watched.
func (v *View) scope() *Scope { return &v.scopes[len(v.scopes)-1] }

// list reports whether the parts are shown, and not the tree of one.
func (v *View) list() bool { return v.scope().By != counts.Run && v.of == "" }

// turn shows another of the views.
func (v *View) turn(ctx context.Context, by int) {
	at := max(0, slices.Index(Views, v.scope().By))
	v.divide(ctx, Views[(at+by)%len(Views)])
}

// divide divides what is watched by another kind.
func (v *View) divide(ctx context.Context, by counts.Kind) {
	if s := v.scope(); s.By != by {
		s.By, v.selected, v.paused = by, 0, false
		v.watch(ctx)
	} else {
		v.of = ""
	}
}

// deeper has levels counted that were not.
func (v *View) deeper(ctx context.Context) {
	s := v.scope()
	if len(v.now) == 0 || s.Sampled() {
		return
	}
	known, unknown := false, false
	for _, n := range v.part().nodes {
		if depth(n.path) == v.level {
			known, unknown = known || n.value != "–", unknown || n.value == "–"
		}
	}
	if unknown && !known {
		s.Level = v.level
		v.watch(ctx)
	}
}

// open watches the part that is selected: the tree of a processor, process, thread or
// cgroup, the functions of a module, the lines of a function.
func (v *View) open(ctx context.Context) {
	if !v.list() || v.selected >= len(v.now) {
		return
	}
	p, s := v.now[v.selected], *v.scope()
	next := Scope{Part: s.Part, Code: s.Code, Level: s.Level}
	switch p.scope.Kind {
	case counts.CPU, counts.Process, counts.Thread, counts.Cgroup:
		next.Part = &p.scope
	case counts.Module:
		next.By, next.Code = counts.Function, counts.Code{Module: p.scope.Code.Module}
	case counts.Function:
		next.By, next.Code = counts.Line, counts.Code{Module: p.scope.Code.Module, Function: p.scope.Code.Function}
	case counts.Line:
		return
	default: // another kind that the user named: its tree is in the account
		v.of, v.selected = p.key, 0
		return
	}
	v.scopes = append(v.scopes, next)
	v.selected, v.paused = 0, false
	v.watch(ctx)
}

// back watches what was watched before.
func (v *View) back(ctx context.Context) {
	switch {
	case v.of != "":
		v.of, v.selected = "", 0
	case len(v.scopes) > 1:
		v.scopes = v.scopes[:len(v.scopes)-1]
		v.selected, v.paused = 0, false
		v.watch(ctx)
	}
}
