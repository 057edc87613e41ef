package ostime

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// taskstats makes a struct taskstats of a version, as large as that of version 13.
func taskstats(version uint16, tid, pid, parent int, name string) []byte {
	const size = 416
	b := make([]byte, size)
	order := binary.NativeEndian
	order.PutUint16(b[statsVersion:], version)
	for at, v := range map[int]uint64{statsQueued: 2e6, statsDisks: 3e6, statsRun: 5e6, statsLived: 40_000, statsUser: 4000,
		statsSystem: 1000, statsVoluntary: 7, statsGaveWay: 8} {
		order.PutUint64(b[at:], v)
	}
	copy(b[statsName:statsNameEnd], name)
	for at, v := range map[int]int{statsTID: tid, statsParent: parent, statsProcess: pid} {
		order.PutUint32(b[at:], uint32(v))
	}
	return b
}

// attribute frames an attribute.
func attribute(kind uint16, content []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(attributeHead+len(content)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), content...)
	return append(b, make([]byte, aligned(int64(len(b)))-int64(len(b)))...)
}

// message frames a message of generic netlink.
func message(kind uint16, content []byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(messageHead+genericHead+len(content)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, make([]byte, messageHead-6+genericHead)...)
	return append(b, content...)
}

// record is the message about a thread that ended, and with it its process.
func record(stats []byte) []byte {
	inner := append(attribute(1, []byte{1, 0, 0, 0}), attribute(typeStats, stats)...)
	return message(31, append(attribute(aggregatePID, inner), attribute(aggregatePID+1, inner)...))
}

func TestParseEndings(t *testing.T) {
	want := ending{tid: 12, pid: 10, parent: 9, name: "worker", lived: 40 * time.Millisecond,
		reading: reading{run: 5e6, wait: 2e6, io: 3e6, user: 4e6, system: 1e6, voluntary: 7, involuntary: 8, switches: true}}
	older := want
	older.pid = 0
	for _, tt := range []struct {
		name string
		data []byte
		want []ending
		err  error
	}{
		{"one", record(taskstats(13, 12, 10, 9, "worker")), []ending{want}, nil},
		{"two in a datagram", append(record(taskstats(13, 12, 10, 9, "worker")), record(taskstats(14, 12, 10, 9, "worker"))...), []ending{want, want}, nil},
		{"without the process", record(taskstats(11, 12, 10, 9, "worker")), []ending{older}, nil},
		{"a short one", record(taskstats(11, 12, 10, 9, "worker")[:statsLeast]), []ending{older}, nil},
		{"an acknowledgement", message(messageError, make([]byte, 16)), nil, nil},
		{"the version with other places", record(taskstats(statsMoved, 12, 10, 9, "worker")), nil, errMoved},
		{"no number", record(taskstats(13, 0, 10, 9, "worker")), nil, errMoved},
		{"cut", record(taskstats(13, 12, 10, 9, "worker"))[:100], nil, errFraming},
		{"a length of nothing", make([]byte, 20), nil, errFraming},
	} {
		got, err := parseEndings(nil, tt.data)
		if !errors.Is(err, tt.err) || tt.err == nil && len(got) != len(tt.want) {
			t.Errorf("%s: %v, %v", tt.name, got, err)
			continue
		}
		for i := range tt.want {
			if got[i] != tt.want[i] {
				t.Errorf("%s:\n%+v, want\n%+v", tt.name, got[i], tt.want[i])
			}
		}
	}
	if _, err := parseStats(make([]byte, statsLeast-1)); err == nil {
		t.Error("a struct that is too short was read")
	}
}

func FuzzParseEndings(f *testing.F) {
	f.Add(record(taskstats(13, 12, 10, 9, "worker")))
	f.Add(record(taskstats(11, 12, 10, 9, strings.Repeat("x", 40))))
	f.Add(message(messageError, make([]byte, 16)))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _ := parseEndings(nil, data)
		for _, e := range list {
			if e.tid <= 0 || e.parent < 0 || e.lived < 0 || e.reading.run < 0 || strings.Contains(e.name, "\x00") {
				t.Errorf("%+v", e)
			}
		}
	})
}

// A script is an exitSource with the records of a test.
type script struct {
	rounds [][]ending
	lost   bool
}

func (s *script) drain() (list []ending, lost bool, err error) {
	if len(s.rounds) > 0 {
		list, s.rounds = s.rounds[0], s.rounds[1:]
	}
	return list, s.lost, nil
}

func (s *script) close() {}

// ran is a thread with its times in milliseconds: how long it lived, ran and waited.
func ran(tid, pid, parent, lived, run, wait int) ending {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	return ending{tid: tid, pid: pid, parent: parent, name: "x", lived: ms(lived),
		reading: reading{run: ms(run), wait: ms(wait), user: ms(run), switches: true, voluntary: 1}}
}

// TestTold has threads end that nobody has looked at.
func TestTold(t *testing.T) {
	begin := func(s *script) (*fakeMachine, *Watch) {
		m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
		m.thread(1, 1, 0, "init", "S", 0, 0, 0, 0)
		m.thread(100, 100, 50, "sh", "R", 10000, 0, 0, 0)
		m.thread(70, 70, 1, "elsewhere", "S", 0, 0, 0, 0)
		m.thread(120, 120, 100, "runs on", "S", 10100, 0, 0, 0)
		w := newWatch(m.root, Spec{}, func() time.Duration { return m.now })
		w.Close()
		w.exits.source, w.exits.err = s, nil
		w.Started(100)
		m.now += time.Second
		m.thread(100, 100, 50, "sh", "Z", 10000, 100, 200, 0)
		return m, w
	}
	for _, tt := range []struct {
		name   string
		rounds [][]ending
		want   map[string]float64 // including the shell's second: it ran for 100 ms and waited for 200
	}{
		{"nothing", nil, map[string]float64{"thread_time": 1000, "thread_run": 100, "runqueue_wait": 200}},
		{"a child", [][]ending{{ran(110, 110, 100, 40, 5, 2)}}, map[string]float64{"thread_time": 1040, "thread_run": 105, "runqueue_wait": 202}},
		{"its thread, and a thread of the shell", [][]ending{{ran(111, 110, 100, 10, 1, 0), ran(101, 100, 50, 20, 2, 0), ran(110, 110, 100, 40, 5, 2)}},
			map[string]float64{"thread_time": 1070, "thread_run": 108}},
		{"a grandchild before the child", [][]ending{{ran(112, 112, 110, 30, 3, 0), ran(110, 110, 100, 40, 5, 2)}}, map[string]float64{"thread_time": 1070, "thread_run": 108}},
		{"of one that runs", [][]ending{{ran(121, 121, 120, 30, 3, 0)}}, map[string]float64{"thread_time": 1030, "thread_run": 103}},
		{"of others", [][]ending{{ran(80, 80, 70, 30, 3, 0), ran(81, 81, 1, 30, 3, 0), ran(82, 82, 999, 30, 3, 0), ran(71, 70, 1, 30, 3, 0)}},
			map[string]float64{"thread_time": 1000, "thread_run": 100}},
		{"the shell itself, which ended before that was seen", [][]ending{{ran(100, 100, 50, 900, 90, 9)}}, map[string]float64{"thread_time": 900, "thread_run": 100, "runqueue_wait": 200}},
		{"of a parent that is told of later", [][]ending{{ran(112, 112, 110, 30, 3, 0)}, {ran(110, 110, 100, 40, 5, 2)}}, map[string]float64{"thread_time": 1070, "thread_run": 108}},
		{"as kernels without processes have it", [][]ending{{ran(101, 0, os.Getpid(), 20, 2, 0), ran(110, 0, 100, 40, 5, 2)}},
			map[string]float64{"thread_time": 1060, "thread_run": 107}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, w := begin(&script{rounds: tt.rounds})
			w.Ended(100)
			check(t, millis(w.Join(runTable()), 0), tt.want)
		})
	}
}

// TestToldAndSeen has threads that end between two polls. Others stay in /proc for a
// while after the kernel's record of their end.
func TestToldAndSeen(t *testing.T) {
	m := &fakeMachine{root: fstest.MapFS{}, now: 10 * time.Second}
	m.thread(100, 100, 50, "server", "S", 1000, 50, 0, 0)
	m.thread(100, 101, 50, "worker", "R", 5000, 1000, 0, 0)
	s := &script{}
	w := newWatch(m.root, Spec{PIDs: []int{100}, Interval: true}, func() time.Duration { return m.now })
	w.Close()
	w.exits.source, w.exits.err = s, nil
	w.Attach()

	m.now += 100 * time.Millisecond
	m.thread(100, 101, 50, "worker", "R", 5000, 1060, 10, 0)
	s.rounds = [][]ending{{ran(102, 100, 50, 30, 3, 0)}}
	m.thread(100, 102, 50, "brief", "R", 10060, 3, 0, 0) // its record came, and it is not yet gone
	check(t, millis(w.Join(runTable()), 0), map[string]float64{"thread_time": 230, "thread_run": 63, "runqueue_wait": 10})

	m.now += 100 * time.Millisecond
	m.gone(100, 102)
	m.gone(100, 101)
	s.rounds = [][]ending{{ran(101, 100, 50, 5150, 1090, 15)}} // it began at 5000 to 5010 ms
	out := w.Join(runTable())
	check(t, millis(out, 0), map[string]float64{"thread_time": 100 + 55, "thread_run": 30, "runqueue_wait": 5})
	if v := out.Cell(0, 0).Variance; !(v > 0) {
		t.Errorf("variance %g of a time that is known to the tick", v)
	}

	s.lost = true
	if m.now += 100 * time.Millisecond; len(w.Join(runTable()).Notes) == 0 || !w.exits.overflow {
		t.Error("lost records were not noticed")
	}
}
