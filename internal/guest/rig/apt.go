package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/guest"
)

const (
	// release is the release of Debian that guests are made from, whatever the
	// host runs: the first with all three architectures.
	release = "trixie"
	// keyring is what the release is signed with; package debian-archive-keyring.
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// An apt is Debian's package manager with a state of its own: the sources, the
// architectures and the (empty) list of what is installed are not the system's.
type apt struct {
	dir  string
	host string // Debian's name of the host's architecture
}

// newApt makes the state under the rig's directory and reads the archive's index
// for the host and the architectures given.
func newApt(ctx context.Context, rig string, archs []guest.Arch) (*apt, error) {
	for _, tool := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("%w: guests are made from Debian's packages, by Debian's tools", err)
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("%w: the package debian-archive-keyring has it", err)
	}
	archive, err := findArchive(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Join(rig, "apt"))
	if err != nil {
		return nil, err
	}
	a := &apt{dir: dir, host: runtime.GOARCH}
	if err := a.configure(archive, archs); err != nil {
		return nil, err
	}
	return a, a.run(ctx, "apt-get", "-q", "update")
}

// findArchive returns the URL of the archive that the system's apt uses.
func findArchive(ctx context.Context) (string, error) {
	archive := os.Getenv("CYCLESTACK_DEBIAN")
	if archive == "" {
		out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").Output()
		if err != nil {
			return "", fmt.Errorf("apt-get indextargets: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimSpace(line); strings.HasSuffix(strings.TrimSuffix(line, "/"), "/debian") {
				archive = line
				break
			}
		}
	}
	if archive == "" {
		return "", errors.New("the system's apt has no archive of Debian: set CYCLESTACK_DEBIAN to the URL of one")
	}
	// It becomes part of a line of apt's configuration.
	if u, err := url.Parse(archive); err != nil || u.Scheme == "" || strings.ContainsAny(archive, " \t\n[]#") {
		return "", fmt.Errorf("%q is not the URL of an archive", archive)
	}
	return archive, nil
}

// configure writes the configuration. Options of the system's that say how to reach
// the network stay in force.
func (a *apt) configure(archive string, archs []guest.Arch) error {
	names := []string{a.host}
	for _, g := range archs {
		if !slices.Contains(names, g.Debian) {
			names = append(names, g.Debian)
		}
	}
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil {
			return err
		}
	}
	source := fmt.Sprintf("deb [arch=%s signed-by=%s] %s %s main\n", strings.Join(names, ","), keyring, archive, release)
	conf := new(strings.Builder)
	for _, o := range [][2]string{
		{"Dir::State", a.dir},
		{"Dir::State::lists", filepath.Join(a.dir, "lists")},
		{"Dir::State::status", filepath.Join(a.dir, "status")},
		{"Dir::Cache", filepath.Join(a.dir, "cache")},
		{"Dir::Etc::sourcelist", filepath.Join(a.dir, "sources.list")},
		{"Dir::Etc::sourceparts", "/dev/null"},
		{"APT::Architecture", a.host},
		{"APT::Sandbox::User", "root"}, // whoever runs this: the state is theirs
		{"APT::Get::AllowUnauthenticated", "false"},
		{"Acquire::AllowInsecureRepositories", "false"},
		{"Acquire::ForceHash", "SHA256"}, // what --print-uris prints
		{"Acquire::Retries", "3"},
		{"Acquire::Languages", "none"},
		{"Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false"},
		{"Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled", "false"},
		{"Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled", "false"},
		{"Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled", "false"},
	} {
		fmt.Fprintf(conf, "%s %q;\n", o[0], o[1])
	}
	conf.WriteString("#clear APT::Architectures;\n")
	for _, name := range names {
		fmt.Fprintf(conf, "APT::Architectures:: %q;\n", name)
	}
	for name, text := range map[string]string{"status": "", "sources.list": source, "apt.conf": conf.String()} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// archives is where downloaded packages are.
func (a *apt) archives() string { return filepath.Join(a.dir, "cache", "archives") }

// clean removes the downloaded packages and the indices, which are larger than
// what was unpacked.
func (a *apt) clean() error { return os.RemoveAll(a.dir) }

func (a *apt) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = a.archives()
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.dir, "apt.conf"), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8")
	cmd.Stderr = os.Stderr
	return cmd
}

// run runs a command of apt's; what it says goes to standard error.
func (a *apt) run(ctx context.Context, name string, args ...string) error {
	cmd := a.command(ctx, name, args...)
	cmd.Stdout = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}

func (a *apt) output(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := a.command(ctx, name, args...)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return out, nil
}

// A deb is a package's file as the signed index has it.
type deb struct {
	file   string
	sha256 string
}

// download fetches packages of an architecture without their dependencies.
func (a *apt) download(ctx context.Context, arch string, names ...string) ([]deb, error) {
	args := []string{"download"}
	for _, name := range names {
		args = append(args, name+":"+arch)
	}
	return a.fetch(ctx, args, nil)
}

// closure fetches a package for the host with all of its dependencies, down to the
// C library.
func (a *apt) closure(ctx context.Context, name string) ([]deb, error) {
	args := []string{"install", "--no-install-recommends", name + ":" + a.host}
	return a.fetch(ctx, args, []string{"--download-only"})
}

// fetch runs a command of apt-get's that downloads packages, and checks them.
func (a *apt) fetch(ctx context.Context, args, options []string) ([]deb, error) {
	debs, err := a.uris(ctx, args...)
	if err != nil {
		return nil, err
	}
	if err := a.run(ctx, "apt-get", slices.Concat([]string{"-q", "-y"}, options, args)...); err != nil {
		return nil, err
	}
	for _, d := range debs {
		if err := a.check(d); err != nil {
			return nil, err
		}
	}
	return debs, nil
}

// uris returns the files that a command of apt-get's would fetch, with the sums
// that the index has.
func (a *apt) uris(ctx context.Context, args ...string) ([]deb, error) {
	out, err := a.output(ctx, "apt-get", append([]string{"-q", "-y", "--print-uris"}, args...)...)
	if err != nil {
		return nil, err
	}
	return parseURIs(bytes.NewReader(out))
}

// parseURIs reads what apt-get prints for --print-uris, a line for each file
// among others: 'URL' NAME SIZE SHA256:SUM.
func parseURIs(r io.Reader) ([]deb, error) {
	var debs []deb
	for s := bufio.NewScanner(r); s.Scan(); {
		f := strings.Fields(s.Text())
		if len(f) < 3 || !strings.HasPrefix(f[0], "'") {
			continue
		}
		if len(f) != 4 || !strings.HasPrefix(f[3], "SHA256:") {
			return nil, fmt.Errorf("apt has no SHA-256 sum for %s", f[1])
		}
		debs = append(debs, deb{file: f[1], sha256: strings.TrimPrefix(f[3], "SHA256:")})
	}
	return debs, nil
}

// check compares a file with the index once more: apt does so too, but can be
// told not to.
func (a *apt) check(d deb) error {
	f, err := os.Open(filepath.Join(a.archives(), d.file))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != d.sha256 {
		return fmt.Errorf("%s has the SHA-256 sum %s, and the archive's index says %s", d.file, got, d.sha256)
	}
	return nil
}

// newest returns the kernel that a package for the newest kernel depends on:
// linux-image-6.12.43+deb13-cloud-arm64 for linux-image-cloud-arm64.
func (a *apt) newest(ctx context.Context, name, arch string) (string, error) {
	out, err := a.output(ctx, "apt-cache", "depends", name+":"+arch)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		dep, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: ")
		if ok && strings.HasPrefix(dep, "linux-image-") {
			dep, _, _ = strings.Cut(dep, ":")
			return dep, nil
		}
	}
	return "", fmt.Errorf("%s:%s depends on no kernel", name, arch)
}

// libraries returns the packages with libraries that a package depends on,
// directly or not.
func (a *apt) libraries(ctx context.Context, name, arch string) ([]string, error) {
	out, err := a.output(ctx, "apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests",
		"--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances", name+":"+arch)
	if err != nil {
		return nil, err
	}
	var libs []string
	for line := range strings.Lines(string(out)) {
		// Each package has a line of its own, and those with its dependencies are
		// indented.
		pkg, ok := strings.CutSuffix(strings.TrimRight(line, "\n"), ":"+arch)
		if ok && (strings.HasPrefix(pkg, "lib") || pkg == "zlib1g") {
			libs = append(libs, pkg)
		}
	}
	return libs, nil
}
