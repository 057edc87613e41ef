package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cyclestack/cyclestack/internal/guest"
	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestParseURIs(t *testing.T) {
	got, err := parseURIs(strings.NewReader("Reading package lists...\n" +
		"'http://host.invalid/debian/pool/q/qemu_1%3a10_amd64.deb' qemu_1%3a10_amd64.deb 7630948 SHA256:0a1b\n" +
		"'http://host.invalid/debian/pool/l/linux.deb' linux.deb 12 SHA256:ff\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []deb{{"qemu_1%3a10_amd64.deb", "0a1b"}, {"linux.deb", "ff"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(deb{})); diff != "" {
		t.Error(diff)
	}
	for _, line := range []string{
		"'http://host.invalid/linux.deb' linux.deb 12 MD5Sum:ff\n", // no reliable sum
		"'http://host.invalid/linux.deb' linux.deb 12\n",
	} {
		if _, err := parseURIs(strings.NewReader(line)); fmt.Sprint(err) != "apt has no SHA-256 sum for linux.deb" {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// A file that is not what the index says is refused.
func TestCheck(t *testing.T) {
	a := &apt{dir: t.TempDir()}
	if err := os.MkdirAll(a.archives(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.archives(), "x.deb"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc", FIPS 180-2
	if err := a.check(deb{"x.deb", sum}); err != nil {
		t.Error(err)
	}
	if err := a.check(deb{"x.deb", strings.Repeat("0", 64)}); err == nil {
		t.Error("a file with another sum is accepted")
	}
}

func TestConfigure(t *testing.T) {
	a := &apt{dir: filepath.Join(t.TempDir(), "apt"), host: "amd64"}
	if err := a.configure("http://host.invalid/debian", guest.Archs[:2]); err != nil {
		t.Fatal(err)
	}
	sources, err := os.ReadFile(filepath.Join(a.dir, "sources.list"))
	if err != nil {
		t.Fatal(err)
	}
	want := "deb [arch=amd64,arm64,ppc64el signed-by=" + keyring + "] http://host.invalid/debian " + release + " main\n"
	if got := string(sources); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is no URL must not become a line of apt's configuration.
func TestFindArchive(t *testing.T) {
	for _, archive := range []string{"debian", "http://x/ trixie main\ndeb http://y/", "http://x/#"} {
		t.Setenv("CYCLESTACK_DEBIAN", archive)
		if got, err := findArchive(t.Context()); err == nil {
			t.Errorf("%q is taken for an archive, %q", archive, got)
		}
	}
	t.Setenv("CYCLESTACK_DEBIAN", "http://host.invalid/debian")
	if got, err := findArchive(t.Context()); got != "http://host.invalid/debian" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFindKernel(t *testing.T) {
	archive := func(names ...string) *tar.Reader {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, name := range names {
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(name))}); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, name); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return tar.NewReader(&buf)
	}
	for _, name := range []string{"./boot/vmlinuz-6.12-arm64", "./boot/vmlinux-6.12-powerpc64le"} {
		r, err := findKernel(archive("./boot/config-6.12", "./usr/vmlinuz-6.12", name, "./z"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := io.ReadAll(r); string(got) != name || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if _, err := findKernel(archive("./boot/config-6.12")); err == nil {
		t.Error("a kernel was found where there is none")
	}
}

func TestArguments(t *testing.T) {
	err := run(t.Context(), []string{"-dir", t.TempDir(), "mips"})
	if err == nil || !strings.Contains(err.Error(), `no guests of "mips"`) {
		t.Errorf("run = %v", err)
	}
}
