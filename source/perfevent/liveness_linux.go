package perfevent

import (
	"slices"
	"sync"
	"time"
)

// A liveness watches processes and threads and says when the last has ended.
type liveness struct {
	gone chan struct{} // closed when all have ended
	quit chan struct{}
	once sync.Once
}

// lookEvery is how often it is looked whether what is counted is still there.
const lookEvery = 50 * time.Millisecond

func newLiveness(t *Target) *liveness {
	l := &liveness{gone: make(chan struct{}), quit: make(chan struct{})}
	pids, tids := slices.Clone(t.PIDs), slices.Clone(t.TIDs)
	go func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			pids = slices.DeleteFunc(pids, func(pid int) bool { return !processExists(pid) })
			tids = slices.DeleteFunc(tids, func(tid int) bool { return !taskExists(tid) })
			if len(pids)+len(tids) == 0 {
				close(l.gone)
				return
			}
			select {
			case <-ticker.C:
			case <-l.quit:
				return
			}
		}
	}()
	return l
}

func (l *liveness) close() { l.once.Do(func() { close(l.quit) }) }
