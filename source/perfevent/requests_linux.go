package perfevent

import (
	"sync"

	"golang.org/x/sys/unix"
)

// asked are the requests that wait for Next.
type asked struct {
	mu   sync.Mutex
	list []func(enable func(bool) error)
}

// listen takes requests, and wakes Next for them.
func (s *Sampling) listen() {
	if s.options.Requests == nil {
		return
	}
	requests, notifier, closed := s.options.Requests, s.session.wake.notifier, s.session.wake.closed
	go func() {
		for {
			select {
			case f := <-requests:
				s.asked.mu.Lock()
				s.asked.list = append(s.asked.list, f)
				s.asked.mu.Unlock()
				notifier.notify()
			case <-closed:
				return
			}
		}
	}()
}

// answer calls the requests. It reports whether there were any.
func (s *Sampling) answer() bool {
	s.asked.mu.Lock()
	list := s.asked.list
	s.asked.list = nil
	s.asked.mu.Unlock()
	for _, f := range list {
		f(s.allow)
	}
	return len(list) > 0
}

// allow lets samples be taken, or not. What tracks tasks goes on in both cases.
func (s *Sampling) allow(on bool) error {
	if !s.session.enabled {
		if on {
			s.session.begins()
			s.session.enable()
		}
		return nil
	}
	request := uint(unix.PERF_EVENT_IOC_DISABLE)
	if on {
		request = unix.PERF_EVENT_IOC_ENABLE
	}
	var first error
	for i := range s.session.opener.sets {
		if set := &s.session.opener.sets[i]; !set.tracks() {
			if err := control(set.leader, request); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}
