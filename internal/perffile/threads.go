package perffile

// IdleComm is perf's name of the kernel's idle threads, whose number is 0.
const IdleComm = "swapper"

// Limits of what a file can make a reader remember of threads.
const (
	maxThreads = 1 << 18
	maxComm    = 64 // bytes of a thread's name; the kernel's have 15
	maxForks   = 64 // between a thread without a name of its own and one that has one
)

// Threads are what threads are called in the end. One that never says its name has the one that its maker had when it
// made the thread. Each processor has a buffer, so a record of an earlier time can come later: an exec's name, behind
// the threads that the new program made at once on another processor. The zero value knows none.
type Threads struct{ known map[int]thread }

type thread struct {
	name  string // said, or the maker's when the record of the fork came
	time  uint64 // of the record that decides
	maker int
	said  bool
}

// Say notes that a thread said its name at a time, if what is known is not newer.
func (t *Threads) Say(tid int, time uint64, name []byte) {
	if old := t.known[tid]; !old.said || old.time <= time {
		t.set(tid, thread{name: string(name[:min(len(name), maxComm)]), time: time, said: true})
	}
}

// Fork notes that a thread was made by another at a time, if nothing is known of it.
func (t *Threads) Fork(tid, maker int, time uint64) {
	if _, known := t.known[tid]; !known {
		t.set(tid, thread{name: t.Name(maker), time: time, maker: maker})
	}
}

func (t *Threads) set(tid int, to thread) {
	if t.known == nil {
		t.known = map[int]thread{}
	}
	if _, known := t.known[tid]; known || len(t.known) < maxThreads {
		t.known[tid] = to
	}
}

// Name returns what a thread is called, as the records have it, "" if nothing says it.
func (t *Threads) Name(tid int) string {
	first, known := t.known[tid]
	if tid == 0 && !known {
		return IdleComm
	}
	at := first
	for range maxForks {
		if at.said {
			return at.name
		}
		maker, known := t.known[at.maker]
		if !known || maker.said && (maker.time > at.time || at.time == 0) && first.name != "" {
			break // the maker changed its name later, or times are not known
		}
		at = maker
	}
	return first.name
}
