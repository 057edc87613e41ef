package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// secondName is the executable with the commands that need the network or large libraries.
const secondName = "cyclestack-extra"

// second are the commands of the second executable.
var second = []struct{ name, short string }{
	{"top", "Follow the account of what runs, in the terminal"},
	{"serve", "Show recordings, or what is counted now, to a browser"},
	{"show", "Show a picture in the terminal, or make a PNG of it"},
	{"agent", "Export accounts of this machine and its containers, for Prometheus"},
	{"fleet", "Account for many hosts, from a Prometheus-compatible store"},
	{"convert", "Write counts, accounts and places of recordings as Parquet"},
}

// elsewhere makes a command that the second executable has.
func (a *app) elsewhere(name, short string) *cobra.Command {
	return &cobra.Command{
		Use:     name,
		GroupID: "second",
		Short:   short,
		Long: short + `.

The command is in a second executable, cyclestack-extra, which is looked for next to
this one and on the PATH. 'cyclestack ` + name + ` --help' prints its help.`,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return a.runSecond(append([]string{name}, args...)) },
	}
}

// runSecond runs the second executable in place of this one.
func (a *app) runSecond(args []string) error {
	path, err := findSecond()
	if err != nil {
		return machineError(err)
	}
	err = syscall.Exec(path, append([]string{path}, args...), os.Environ())
	if !errors.Is(err, errors.ErrUnsupported) {
		return machineError(fmt.Errorf("%s cannot be run: %w", path, err))
	}
	cmd := exec.Command(path, args...) // Windows has no other way
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.out, a.err
	err = cmd.Run()
	if status := (*exec.ExitError)(nil); errors.As(err, &status) {
		return &failure{status.ExitCode(), errors.New("")}
	}
	return err
}

// findSecond looks for the second executable: next to this one, then on the PATH.
func findSecond() (string, error) {
	if own, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(own), secondName)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(secondName)
	if err != nil {
		return "", fmt.Errorf("it is in %s, which is neither next to cyclestack nor on the PATH: go install github.com/cyclestack/cyclestack/cmd/%s@latest", secondName, secondName)
	}
	return path, nil
}
