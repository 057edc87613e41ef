package emulator

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The plugin's source, under its own licence, is built on the machine where it is used. It is
// compressed, which makes the program 29 kB smaller. People edit the text.
//
//go:generate go test . -run TestPacked -update
//go:embed packed
var packed embed.FS

// sourceOf returns a file of the plugin's source.
func sourceOf(name string) ([]byte, error) {
	f, err := packed.Open("packed/" + name + ".gz")
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// ErrNotInstalled says that there is no emulator.
var ErrNotInstalled = errors.New("QEMU's user mode emulation is not installed")

// errCompiler says that the plugin cannot be built.
var errCompiler = errors.New("the plugin for QEMU needs a C compiler")

// Available returns an error if no program for an instruction set can be emulated: there is
// no QEMU, or neither a plugin nor a compiler.
func Available(target string) error {
	if _, err := find(target); err != nil {
		return err
	}
	if _, err := compiler(); err != nil {
		if plugins, _ := filepath.Glob(filepath.Join(cacheDir(), pluginName+"*.so")); len(plugins) == 0 {
			return err
		}
	}
	return nil
}

// find returns the emulator of an instruction set.
func find(target string) (string, error) {
	path, err := exec.LookPath("qemu-" + target)
	if err != nil {
		return "", ErrNotInstalled
	}
	if err, ok := checked.Load(path); ok {
		err, _ := err.(error)
		return path, err
	}
	if !readable(interfaceFile(path)) {
		err = hasPlugins(path)
	}
	checked.Store(path, err)
	return path, err
}

// checked are the emulators that were looked at, and their errors.
var checked sync.Map

// hasPlugins returns an error if an emulator cannot load plugins. Some distributions link it
// statically, without them.
func hasPlugins(qemu string) error {
	ctx, cancel := context.WithTimeout(context.Background(), buildLimit)
	defer cancel()
	help, err := exec.CommandContext(ctx, qemu, "-h").Output()
	if len(help) > 0 && !strings.Contains(string(help), "\n-plugin") {
		return fmt.Errorf("%s was built without plugins", qemu)
	}
	if len(help) == 0 && err != nil {
		return fmt.Errorf("%s -h: %w", qemu, err)
	}
	return nil
}

// buildLimit is how long the version of QEMU and the compiler may take.
const buildLimit = 30 * time.Second

// built returns the plugin for the installed emulator. It is built once, into the user's
// directory for caches. Where that cannot be made, it is built into a directory of the run.
func built(ctx context.Context, target, scratch string) (string, error) {
	qemu, err := find(target)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	api, err := interfaceOf(ctx, qemu)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, name := range []string{"trace.c", "qemu.h"} {
		text, err := sourceOf(name)
		if err != nil {
			return "", err
		}
		hash.Write(text)
	}
	name := fmt.Sprintf("%s%d-%s.so", pluginName, api, hex.EncodeToString(hash.Sum(nil))[:16])
	if own, err := os.Executable(); err == nil { // shipped with the program
		if path := filepath.Join(filepath.Dir(own), name); readable(path) {
			return path, nil
		}
	}
	path := filepath.Join(cacheDir(), name)
	if readable(path) {
		return path, nil
	}
	if err := os.MkdirAll(cacheDir(), 0o700); err != nil {
		path = filepath.Join(scratch, name)
	}
	return path, compile(ctx, api, path)
}

// pluginName begins the names of plugins.
const pluginName = "qemu-plugin-"

// cacheDir is where plugins are built.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "cyclestack")
}

// compiler returns the C compiler.
func compiler() (path string, err error) {
	for _, name := range []string{"cc", "gcc", "clang"} {
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errCompiler
}

func readable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// compile builds the plugin.
func compile(ctx context.Context, api int, path string) error {
	compiler, err := compiler()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"trace.c", "qemu.h", "COPYING"} {
		text, err := sourceOf(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O2", "-fvisibility=hidden", "-pthread", fmt.Sprintf("-DQEMU_API=%d", api), "trace.c", "-o", "plugin.so")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(string(out), "\n")
		return fmt.Errorf("the plugin for QEMU cannot be built: %v: %.200s", err, first)
	}
	return os.Rename(filepath.Join(dir, "plugin.so"), path)
}

// interfaceFile is where the version of an emulator's plugin interface is kept: to ask it takes two starts of QEMU.
// The file is another one once the emulator has changed.
func interfaceFile(qemu string) string {
	info, err := os.Stat(qemu)
	if err != nil {
		return ""
	}
	hash := sha256.Sum256(fmt.Append(nil, qemu, info.Size(), info.ModTime().UnixNano()))
	return filepath.Join(cacheDir(), "qemu-"+hex.EncodeToString(hash[:8]))
}

// interfaceOf returns the version of the plugin interface of an emulator with plugins, and keeps it.
func interfaceOf(ctx context.Context, qemu string) (api int, err error) {
	file := interfaceFile(qemu)
	if text, err := os.ReadFile(file); err == nil {
		if api, err = strconv.Atoi(string(text)); err == nil && 0 < api && api <= newestInterface {
			return api, nil
		}
	}
	if api, err = askInterface(ctx, qemu); err == nil && os.MkdirAll(cacheDir(), 0o700) == nil {
		_ = os.WriteFile(file, []byte(strconv.Itoa(api)), 0o600) // else it is asked again
	}
	return api, err
}

func askInterface(ctx context.Context, qemu string) (int, error) {
	out, err := exec.CommandContext(ctx, qemu, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("%s --version: %w", filepath.Base(qemu), err)
	}
	return interfaceIn(string(out))
}

const newestInterface = 7

// interfaceIn reads the version of QEMU. Each release has one version of the interface.
func interfaceIn(text string) (int, error) {
	_, rest, ok := strings.Cut(text, " version ")
	parts := strings.SplitN(rest, ".", 3)
	if !ok || len(parts) < 2 {
		return 0, errors.New("QEMU says no version")
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil {
		return 0, errors.New("QEMU says no version")
	}
	switch v := major*100 + minor; {
	case v < 600:
		return 0, fmt.Errorf("QEMU %d.%d is too old: 6.0 has plugins", major, minor)
	case v < 900:
		return 1, nil
	case v < 901:
		return 2, nil
	case v < 902:
		return 3, nil
	case v < 1001:
		return 4, nil
	case v < 1003:
		return 5, nil
	case v < 1101:
		return 6, nil
	}
	return newestInterface, nil // a later QEMU says so if it has another
}
