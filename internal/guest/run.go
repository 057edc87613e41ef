package guest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/cyclestack/cyclestack/internal/guest/wire"
)

// A Machine is a guest to be run.
type Machine struct {
	Arch Arch
	CPU  string // the emulated processor; "" is the architecture's usual one
	// CPUs is how many processors there are; 0 is one. The PMUs of arm64 and
	// riscv64 count the instructions of all processors as those of each.
	CPUs int
	// Shift sets the time that an instruction takes, 2 to the power of Shift
	// nanoseconds: at cycles of 1 GHz, the cycles for an instruction.
	Shift int

	// Files are the guest's files, with the host's that they are copies of. One
	// is /init, the first process: internal/guest/init.
	Files map[string]string
	Job   wire.Job
}

// memory is that of a guest, in MiB. The image is in it twice while it is unpacked.
const memory = 768

// Run boots a machine, gives out what its command prints as it comes, and returns how
// the command ended. An error says that the guest did not come that far, with
// the end of what its console had.
func (r Rig) Run(ctx context.Context, m Machine, output io.Writer) (*wire.End, error) {
	if err := r.Missing(m.Arch); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "cyclestack-guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	image := filepath.Join(dir, "image")
	if err := m.writeImage(image); err != nil {
		return nil, err
	}
	cmd, err := r.command(ctx, m, image)
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	console, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end, noise, err := listen(console, output)
	if failed := cmd.Wait(); end == nil && err == nil {
		err = errors.Join(ctx.Err(), failed)
	}
	if end == nil {
		return nil, fmt.Errorf("the guest ended without an answer (%v): %s%s", err, stderr.Bytes(), noise)
	}
	return end, err
}

// writeImage writes the file tree that the guest starts with.
func (m Machine) writeImage(file string) error {
	job, err := json.Marshal(m.Job)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	image := NewImage(w)
	for name, file := range m.Files {
		image.AddFile(name, file)
	}
	image.Add(wire.JobFile, 0o644, job)
	// The kernel opens the console before anything is mounted. Without one, it gives the first
	// process no output.
	image.AddDevice("dev/console", 5, 1)
	return errors.Join(image.Close(), w.Flush(), f.Close())
}

// command is the emulator's command line. The emulator is started by the dynamic
// loader that was fetched with it, and finds its libraries and firmware there.
func (r Rig) command(ctx context.Context, m Machine, image string) (*exec.Cmd, error) {
	loaders, err := filepath.Glob(filepath.Join(r.QEMU(), "usr", "lib", "*", "ld-linux*.so.*"))
	if err != nil || len(loaders) == 0 {
		return nil, fmt.Errorf("there is no dynamic loader in %s: remove that directory and make the rig again", r.QEMU())
	}
	cpu := m.CPU
	if cpu == "" {
		cpu = m.Arch.CPU
	}
	args := slices.Concat([]string{"--library-path", filepath.Dir(loaders[0]), r.Emulator(m.Arch)}, m.Arch.Machine, []string{
		"-L", filepath.Join(r.QEMU(), "usr", "share", "qemu"),
		"-cpu", cpu,
		"-smp", strconv.Itoa(max(m.CPUs, 1)),
		"-m", strconv.Itoa(memory),
		// Time is instructions; while all processors sleep it is skipped.
		"-icount", fmt.Sprintf("shift=%d,sleep=off", m.Shift),
		"-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot",
		"-kernel", r.Kernel(m.Arch), "-initrd", image,
		"-append", "console=" + m.Arch.Console + " loglevel=1 panic=-1",
	})
	cmd := exec.CommandContext(ctx, loaders[0], args...)
	cmd.WaitDelay = 5 * time.Second
	return cmd, nil
}

// listen reads a console to its end. It returns the last event, and the end of
// what was not an event.
func listen(console io.Reader, output io.Writer) (end *wire.End, noise []byte, err error) {
	const keep = 4 << 10
	in := bufio.NewScanner(console)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		e, ok := wire.Decode(in.Bytes())
		if !ok {
			noise = append(append(noise, in.Bytes()...), '\n')
			noise = noise[max(0, len(noise)-keep):]
			continue
		}
		if e.End != nil {
			end = e.End
		}
		if _, werr := output.Write(e.Output); werr != nil && err == nil {
			err = werr
		}
	}
	return end, noise, errors.Join(err, in.Err())
}
