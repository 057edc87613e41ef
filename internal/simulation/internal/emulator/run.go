package emulator

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/caches"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/child"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/pipeline"
)

// A Command is a program to simulate.
type Command struct {
	Args  []string // the program, as a shell would find it, and its arguments
	Stdin *os.File // nil is /dev/null; it is read from its current position
}

// Options say what to simulate.
type Options struct {
	Core      *pipeline.Core // nil: the time of instructions is not known
	Caches    caches.Config
	Latencies Latencies
	// Period is how many blocks of code pass between two windows at most, on average. Warm is
	// how many before a window the branch predictor sees at most. Windows is how many a run of the
	// expected length has. In a longer run more blocks pass between two.
	Period, Warm, Windows int64
	phase                 uint64 // of windows: they are elsewhere with another one
	// Progress is told how far the simulation is, now and then. Nil: nobody asks.
	Progress func(Progress)
	// Indexes keep the symbols of programs for the next time. Nil: they are not kept.
	Indexes object.Indexes
	// Ended is called when the program has ended: there is more memory for what follows. Nil: nobody asks.
	Ended func()
}

// Latencies are how many cycles an access is late.
type Latencies struct {
	L2, L3, Memory             float64 // if the level answers it
	TLB, Walk                  float64 // if the second TLB has its page, and if none has
	L2Line, L3Line, MemoryLine float64 // cycles between two lines
	WalkEach                   float64 // cycles between two page walks
}

// A Simulation is what was simulated. Close removes its files.
type Simulation struct {
	State *os.ProcessState // of the program
	Notes []counts.Note
	// Partial says that the simulation was interrupted.
	Partial bool
	// Timed says that the program reads the clock more than once, or sets timers. Then it may
	// do less in a simulator than by itself.
	Timed bool
	// Hidden is the share of instructions that the processor itself would not execute: it has better
	// ones, and the emulator hides them.
	Hidden float64

	command string
	run     *run
}

// Dir returns the directory of its files.
func (s *Simulation) Dir() string { return s.run.dir }

// A clock is how often a program reads the time, or sets a timer.
type clock struct{ reads, timers int64 }

// Forget frees the memory of what was written. There is no more to write.
func (s *Simulation) Forget() {
	s.run.code.close()
	s.run = &run{dir: s.run.dir, code: newLibrary()}
}

// Close removes the files.
func (s *Simulation) Close() error {
	s.run.code.close()
	return os.RemoveAll(s.run.dir)
}

// TargetOf returns QEMU's name for the instruction set of a program, as a shell would find
// it: that of this machine for a script.
func TargetOf(program string) (string, error) {
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		return "", err
	}
	f, err := elf.Open(path)
	if err != nil {
		return HostTarget(), nil
	}
	defer f.Close()
	switch {
	case f.Class != elf.ELFCLASS64:
	case f.Machine == elf.EM_X86_64:
		return "x86_64", nil
	case f.Machine == elf.EM_AARCH64:
		return "aarch64", nil
	case f.Machine == elf.EM_RISCV:
		return "riscv64", nil
	case f.Machine == elf.EM_PPC64 && f.ByteOrder.String() == "LittleEndian":
		return "ppc64le", nil
	}
	return "", fmt.Errorf("a program for %s, %s cannot be emulated", f.Machine, f.Class)
}

// Takes predicts how long Run takes for a program of some native processor time, with or
// without a core's model.
func Takes(cpu time.Duration, core bool) time.Duration {
	const (
		start    = 400 * time.Millisecond // the emulator, the dynamic linker, symbols
		slowdown = 14                     // of 5 for programs that wait for memory in order to 60 in no order
		windows  = 8                      // the model of the core, in its share of the run
	)
	takes := start + slowdown*cpu
	if core {
		takes += 500*time.Millisecond + windows*cpu
	}
	return takes
}

// Run simulates a program with all that it starts, and discards its output. If ctx ends, the
// program ends, and the simulation is of what was executed until then.
func Run(ctx context.Context, c Command, o Options) (*Simulation, error) {
	target, err := TargetOf(c.Args[0])
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "cyclestack-")
	if err != nil {
		return nil, err
	}
	plugin, err := built(ctx, target, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	r := newRun(&o, dir)
	s := &Simulation{run: r, command: strings.Join(c.Args, " ")}
	if err := s.emulate(ctx, &c, target, plugin); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func newRun(o *Options, dir string) *run {
	r := &run{options: o, dir: dir, since: time.Now(), before: child.Spent(nil), code: newLibrary(), shared: caches.NewShared(o.Caches), by: map[int]*process{},
		calls: indirects{at: map[uint64]uint32{}}}
	r.defined, r.code.indexes = sync.NewCond(&r.Mutex), o.Indexes
	return r
}

// emulate runs the program, and sums up what was simulated.
func (s *Simulation) emulate(ctx context.Context, c *Command, target, plugin string) error {
	r := s.run
	socket := filepath.Join(r.dir, "socket")
	l, err := listen(socket)
	if err != nil {
		return err
	}
	cmd, said, err := c.under(ctx, r, target, plugin, socket)
	if err == nil {
		err = start(cmd)
	}
	if err != nil {
		l.close()
		return err
	}
	accepted := make(chan struct{})
	go func() {
		r.accept(l)
		close(accepted)
	}()
	_ = cmd.Wait()
	child.EndRest(cmd.Process.Pid, r.dir)
	l.stop()
	<-accepted
	l.close()
	r.ended.Wait()
	if r.options.Ended != nil {
		r.options.Ended()
	}
	s.State, s.Partial = cmd.ProcessState, ctx.Err() != nil
	return s.finish(said)
}

// finish sums up.
func (s *Simulation) finish(said *bytes.Buffer) error {
	r := s.run
	if r.faults != nil {
		return r.faults
	}
	if len(r.all) == 0 {
		if s.Partial {
			return context.Canceled
		}
		return fmt.Errorf("QEMU failed: %s", lastLine(said.String()))
	}
	r.code.end()
	for _, p := range r.all {
		if err := p.count(); err != nil && len(p.blocks) > 0 {
			return err
		}
	}
	if err := s.unsupported(); err != nil {
		return err
	}
	r.all, r.by, r.shared = nil, nil, nil // what follows needs room
	r.code.settle()
	s.Timed = r.clock.reads > 1 || r.clock.timers > 0
	note, share := s.hidden()
	if s.Hidden = share; note != "" {
		s.Notes = append(s.Notes, counts.Notef("%s", note))
	}
	if s.Partial {
		s.Notes = append(s.Notes, counts.Notef("the simulation was interrupted: the account is of the program until then"))
	}
	if len(r.left) > 0 {
		s.Notes = append(s.Notes, counts.Notef("%d programs were started that could not be simulated: the first is %s", len(r.left), r.left[0]))
	}
	return nil
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text = text[strings.LastIndexByte(text, '\n')+1:]; text == "" {
		return "it said nothing"
	}
	return text
}

// models are the processors that are emulated: those with the most instructions. Copies by
// string instructions are slow in QEMU, so that libraries are told that they are slow.
var models = map[string]string{"x86_64": "max,-erms", "aarch64": "max", "riscv64": "", "ppc64le": ""}

// under makes the process of the emulator.
func (c *Command) under(ctx context.Context, r *run, target, plugin, socket string) (cmd *exec.Cmd, said *bytes.Buffer, err error) {
	qemu, err := find(target)
	if err != nil {
		return nil, nil, err
	}
	path, err := exec.LookPath(c.Args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, nil, err
	}
	args := append([]string{c.Args[0], path}, c.Args[1:]...)
	if interpreter := interpreterOf(path); len(interpreter) > 0 {
		args = append(append([]string{interpreter[0]}, interpreter...), args[1:]...)
	}
	escaped := func(value string) string { return strings.ReplaceAll(value, ",", ",,") }
	sets, ways := r.options.Caches.First()
	options := []string{"-plugin", fmt.Sprintf("%s,dir=%s,socket=%s,sets=%d,ways=%d,period=%d,warm=%d,detail=%d,windows=%d,random=%d,cpu=%s,plugin=%s",
		escaped(plugin), escaped(r.dir), escaped(socket), sets, ways, r.options.Period, r.options.Warm, windowBlocks, r.options.Windows, 0x9e3779b97f4a7c15^r.options.phase, escaped(models[target]), escaped(plugin)), "-0"}
	if models[target] != "" {
		options = append([]string{"-cpu", models[target]}, options...)
	}
	cmd = exec.CommandContext(ctx, qemu, append(options, args...)...)
	if dir := "/usr/" + target + "-linux-gnu"; target != HostTarget() && os.Getenv(libraries) == "" {
		if _, err := os.Stat(dir); err == nil {
			cmd.Env = append(os.Environ(), libraries+"="+dir)
		}
	}
	return cmd, child.Hold(cmd, c.Stdin), nil
}

// Native returns the command that runs a program for another processor, without simulating
// it.
func Native(target string, args []string) []string {
	command := []string{"qemu-" + target, "-0", args[0]}
	if models[target] != "" {
		command = append(command, "-cpu", models[target])
	}
	if dir := "/usr/" + target + "-linux-gnu"; os.Getenv(libraries) == "" {
		if _, err := os.Stat(dir); err == nil {
			command = append(command, "-L", dir)
		}
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		path = args[0]
	}
	return append(append(command, path), args[1:]...)
}

// libraries is the variable of the directory where QEMU finds the libraries of programs for
// other processors. Debian's cross compilers have them below /usr.
const libraries = "QEMU_LD_PREFIX"

// interpreterOf returns the interpreter of a script and its option; none for a program.
func interpreterOf(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	text, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return nil
	}
	name, option, _ := strings.Cut(strings.TrimSpace(text), " ")
	if option = strings.TrimSpace(option); option == "" {
		return []string{name}
	}
	return []string{name, option}
}

// helloLimit is how long a connection may take to say what it is.
const helloLimit = 10 * time.Second

// accept takes the connections of the plugin, until the listener is closed.
func (r *run) accept(l *listener) {
	for {
		c, err := l.accept()
		if err != nil {
			return
		}
		in := bufio.NewReaderSize(c, maxLine)
		_ = c.SetReadDeadline(time.Now().Add(helloLimit))
		line, err := in.ReadSlice('\n')
		_ = c.SetReadDeadline(time.Time{})
		if err != nil {
			_ = c.Close()
			continue
		}
		r.Lock()
		p, isThread, err := r.hello(string(line[:len(line)-1]))
		r.Unlock()
		if err != nil {
			r.fail(err)
			_ = c.Close()
			continue
		}
		r.ended.Add(1)
		go func() {
			defer r.ended.Done()
			defer c.Close()
			if isThread {
				r.Lock()
				t := newThread(r, p)
				r.Unlock()
				r.fail(t.follow(in))
				return
			}
			r.fail(r.control(p, in))
		}()
	}
}

// fail keeps the first error.
func (r *run) fail(err error) {
	if err == nil || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) { // the program was ended
		return
	}
	r.Lock()
	defer r.Unlock()
	if r.faults == nil {
		r.faults = err
	}
}

// HostTarget is QEMU's name for this machine's instruction set.
func HostTarget() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}
