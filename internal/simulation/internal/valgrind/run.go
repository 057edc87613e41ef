package valgrind

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/disasm"
	"github.com/cyclestack/cyclestack/internal/simulation/internal/child"
)

// A Tool is one of valgrind's simulators.
type Tool string

// The simulators. Callgrind knows more: which calls lead where, instructions, a prefetcher,
// forks. It cannot follow programs that switch stacks by themselves, as Go's runtime does;
// cachegrind can.
const (
	Callgrind  Tool = "callgrind"
	Cachegrind Tool = "cachegrind"
)

// A Command is a program to simulate.
type Command struct {
	Args  []string // the program, as a shell would find it, and its arguments
	Env   []string // nil is this process's environment
	Stdin *os.File // nil is /dev/null; it is read from its current position

	Geometry     Geometry
	Tool         Tool // "" chooses the one that works
	Instructions bool // costs by instruction; only callgrind knows them
}

// ErrNotInstalled says that there is no valgrind.
var ErrNotInstalled = errors.New("valgrind is not installed: apt-get install valgrind")

// Installed returns ErrNotInstalled if there is no valgrind to run programs with.
func Installed() error {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return ErrNotInstalled
	}
	return nil
}

// Scratch returns an error if there is no directory for temporary files.
func Scratch() error {
	dir, err := scratch()
	if err != nil {
		return err
	}
	return os.Remove(dir)
}

// scratch makes a directory for valgrind's files.
func scratch() (string, error) {
	dir, err := os.MkdirTemp("", "cyclestack-")
	if err == nil {
		return dir, nil
	}
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return "", fmt.Errorf("no temporary files can be written in %s: %w: TMPDIR names another directory", os.TempDir(), err)
}

// perProcess is the name of a file in a directory for valgrind's options. Valgrind puts the
// process number in, so that each process has its own file.
func perProcess(dir, name string) string {
	return filepath.Join(strings.ReplaceAll(dir, "%", "%%"), name+"%p")
}

// A Simulation is the result of running a program under a simulator.
type Simulation struct {
	Tool  Tool
	Why   string           // the other tool was not used; "" if callgrind was
	Files []string         // of all processes and their parts, until Close
	State *os.ProcessState // of the program
	Notes []counts.Note

	dir string
}

// Close removes the files.
func (s *Simulation) Close() error { return os.RemoveAll(s.dir) }

// Run runs a program under a simulator, with all that it starts, and discards its output.
// The program ends with ctx, and what it leaves running ends with it.
func Run(ctx context.Context, c Command) (*Simulation, error) {
	path, err := c.find()
	if err != nil {
		return nil, err
	}
	tool, why := c.Tool, ""
	switch {
	case tool != "":
	case IsGo(path):
		tool, why = Cachegrind, "it is a Go program, which callgrind cannot follow"
	default:
		tool = Callgrind
	}
	s, err := c.run(ctx, tool)
	var failed *ToolError
	if c.Tool == "" && tool == Callgrind && errors.As(err, &failed) && ctx.Err() == nil {
		why = "callgrind could not follow the program"
		s, err = c.run(ctx, Cachegrind)
	}
	if err != nil {
		return nil, err
	}
	s.Why = why
	return s, nil
}

// find returns the program's file, if there is valgrind to run it.
func (c *Command) find() (string, error) {
	if err := Installed(); err != nil {
		return "", err
	}
	path, err := exec.LookPath(c.Args[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	return path, err
}

// under makes valgrind's process. Its standard error has valgrind's own messages, before
// there is a log, and the program's.
func (c *Command) under(ctx context.Context, options []string) (cmd *exec.Cmd, said *bytes.Buffer) {
	cmd = exec.CommandContext(ctx, "valgrind", slices.Concat(options, []string{"--"}, c.Args)...)
	cmd.Env = c.Env
	return cmd, child.Hold(cmd, c.Stdin)
}

// A ToolError says that a simulator failed, and not the program.
type ToolError struct {
	Tool Tool
	Msg  string // its last message
}

func (e *ToolError) Error() string { return fmt.Sprintf("%s failed: %s", e.Tool, e.Msg) }

// An UnsupportedError says that the program ended at an instruction that the simulator does not
// know.
type UnsupportedError struct {
	Tool        string
	Instruction string
	Place       string // in the code
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s does not know %s (%s): compile without it (-mno-avx512f), or cyclestack record", e.Tool, e.Instruction, e.Place)
}

// InstructionName names an instruction.
func InstructionName(d disasm.Decoder, code []byte, addr uint64) string {
	inst := d.Decode(code, addr)
	if inst.Bad {
		return fmt.Sprintf("the instruction %x", code[:min(6, len(code))])
	}
	return strings.Join(strings.Fields(d.Text(inst, code)), " ")
}

// What valgrind says of a process that ends at an instruction that it does not know: the bytes,
// where that is, and the end.
const (
	unhandledBytes = "amd64->IR: unhandled instruction bytes: "
	unhandledAt    = "Unrecognised instruction at address "
	endedBy        = "Process terminating with default action of signal 4 "
)

// unsupported returns an error if a process of the program was ended by an instruction that is
// not known.
func (s *Simulation) unsupported() error {
	logs, err := s.named("log.")
	for _, name := range logs {
		log, _ := os.ReadFile(name) // what cannot be read says nothing
		text := string(log)
		at := strings.LastIndex(text, unhandledBytes)
		if at < 0 || !strings.Contains(text, endedBy) {
			continue
		}
		e := &UnsupportedError{string(s.Tool), "an instruction", "it is not known where"}
		line, rest, _ := strings.Cut(text[at+len(unhandledBytes):], "\n")
		var code []byte
		for _, field := range strings.Fields(line) {
			v, _ := strconv.ParseUint(field, 0, 8)
			code = append(code, byte(v))
		}
		if d, err := disasm.New(disasm.AMD64, disasm.ATT); err == nil {
			e.Instruction = InstructionName(d, code, 0)
		}
		if _, rest, ok := strings.Cut(rest, unhandledAt); ok {
			_, rest, _ = strings.Cut(rest, "\n")
			line, _, _ := strings.Cut(rest, "\n")
			if _, place, ok := strings.Cut(line, ": "); ok {
				e.Place = strings.TrimSuffix(strings.Replace(place, " (", ", ", 1), ")")
			}
		}
		return e
	}
	return err
}

// run runs the program under one simulator.
func (c *Command) run(ctx context.Context, tool Tool) (*Simulation, error) {
	dir, err := scratch()
	if err != nil {
		return nil, err
	}
	s := &Simulation{Tool: tool, dir: dir}
	if err := s.fill(ctx, c); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// fill runs the program and finds the files.
func (s *Simulation) fill(ctx context.Context, c *Command) error {
	cmd, said := c.under(ctx, c.options(s.Tool, s.dir))
	err := cmd.Run()
	if cmd.Process != nil {
		child.EndRest(cmd.Process.Pid, s.dir)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	s.State = cmd.ProcessState
	main := filepath.Join(s.dir, fmt.Sprintf("out.%d", cmd.Process.Pid))
	if info, err := os.Stat(main); err != nil || info.Size() == 0 {
		return &ToolError{s.Tool, s.lastWords(cmd.Process.Pid, said.Bytes())}
	}
	if err := s.unsupported(); err != nil {
		return err
	}
	if s.Files, err = s.named("out."); err != nil {
		return err
	}
	s.Notes = s.forks()
	return nil
}

// named returns the files whose names begin with a word, in order.
func (s *Simulation) named(word string) (list []string, err error) {
	entries, err := os.ReadDir(s.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), word) {
			list = append(list, filepath.Join(s.dir, e.Name()))
		}
	}
	return list, err
}

// options are the arguments of valgrind. Callgrind dumps its counts before each fork and
// begins at 0 again: otherwise the child would have its parent's counts once more.
func (c *Command) options(tool Tool, dir string) []string {
	list := []string{"--tool=" + string(tool), "--trace-children=yes", "--vgdb=no", "--log-file=" + perProcess(dir, "log."),
		"--cache-sim=yes", "--branch-sim=yes", fmt.Sprintf("--%s-out-file=%s", tool, perProcess(dir, "out."))}
	list = append(list, c.Geometry.options()...)
	if tool == Callgrind {
		list = append(list, "--simulate-hwpref=yes")
		for _, name := range forkNames {
			list = append(list, "--dump-before="+name)
		}
		if c.Instructions {
			list = append(list, "--dump-instr=yes")
		}
	}
	return list
}

// forkNames are the names of fork and its like in C libraries.
var forkNames = []string{"fork", "__fork", "__libc_fork", "_Fork", "vfork", "__vfork"}

// lastWords returns valgrind's last message before it failed.
func (s *Simulation) lastWords(pid int, said []byte) string {
	log, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("log.%d", pid)))
	if err != nil || len(log) == 0 {
		log = said
	}
	return lastWords(string(log))
}

// lastWords returns the line of a text that says why valgrind failed, or else its last
// line.
func lastWords(text string) string {
	last := "it said nothing"
	for _, line := range strings.Split(text, "\n") {
		line = strings.Trim(line, "=-0123456789 \t\r")
		if isFailure(line) {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// isFailure reports whether a line is a message of valgrind's that it cannot go on.
func isFailure(line string) bool {
	return strings.Contains(line, "ssertion") || strings.HasPrefix(line, "valgrind:")
}

// forks says whether forked processes may have the counts of their parents as well:
// cachegrind's do, and callgrind's if no dump preceded the fork. A forked process has a log
// with the same command as its parent's.
func (s *Simulation) forks() []counts.Note {
	if s.Tool == Callgrind && slices.ContainsFunc(s.Files, func(f string) bool { return strings.Count(filepath.Base(f), ".") > 1 }) {
		return nil
	}
	logs, _ := s.named("log.")
	commands := map[string]string{} // by number of process
	parents := map[string]string{}
	for _, name := range logs {
		pid := strings.TrimPrefix(filepath.Base(name), "log.")
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		commands[pid], parents[pid] = field(text, "Command: "), field(text, "Parent PID: ")
	}
	for pid, parent := range parents {
		if commands[pid] != "" && commands[pid] == commands[parent] {
			return []counts.Note{counts.Notef("the program forks, and %s counts for the new process once more what the old one did before", s.Tool)}
		}
	}
	return nil
}

// field returns what follows a word in a log.
func field(text []byte, word string) string {
	_, rest, ok := bytes.Cut(text, []byte(word))
	if !ok {
		return ""
	}
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return string(line)
}

// IsGo reports whether a program was made by Go's compiler.
func IsGo(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Section(".go.buildinfo") != nil
}
