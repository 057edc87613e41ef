package profile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cyclestack/cyclestack/internal/object"
)

func (c Config) withDefaults() Config {
	if c.Debug == nil {
		c.Debug = []string{"/usr/lib/debug"}
	}
	if c.BuildIDCache == "" && c.Root == "" {
		if home, err := os.UserHomeDir(); err == nil {
			c.BuildIDCache = filepath.Join(home, ".debug")
		}
	}
	return c
}

// open looks for the contents of a file.
func (y *Symbolizer) open(f *File) *image {
	c := y.config
	if f == nil {
		return &image{status: Status{Err: errNoFile}, absolute: true}
	}
	var im *image
	switch f.kind {
	case kindKernel, kindModule:
		im = y.openKernel(f)
	case kindVDSO:
		im = c.openVDSO(f)
	case kindPerfMap:
		im = c.openPerfMap(f)
	case kindJitdump:
		im = c.imageOfJitdump(f)
	case kindKernelSym:
		im = &image{name: f.Name, base: f.referenceAddress}
	case kindMemory:
		im = missing("%s is not code", f.Name)
	default:
		im = y.openBinary(f)
	}
	im.absolute = im.absolute || f.kind.absolute()
	return im
}

func (c Config) options(id string) object.Options {
	o := object.Options{BuildID: id, Cache: c.Cache, NoLines: c.NoLines, Root: c.Root, Indexes: c.Indexes}
	for _, d := range c.Debug {
		o.Debug = append(o.Debug, c.rooted(d))
	}
	return o
}

// rooted puts Root in front of a path, which cannot leave Root again.
func (c Config) rooted(path string) string {
	if c.Root == "" {
		return path
	}
	return filepath.Join(c.Root, filepath.Clean("/"+path))
}

// deleted is what the kernel appends to the path of a file that is no longer
// there under it.
const deleted = " (deleted)"

// openBinary looks for a program or library: at its path, by its build id in perf's cache, its
// debug file alone, then on the user's servers.
func (y *Symbolizer) openBinary(f *File) *image {
	c := y.config
	options, notes := c.options(f.BuildID), []string(nil)
	fetch := func(kind, id string) string {
		path, err := y.fetch.find(kind, id)
		if err != nil && !slices.Contains(notes, err.Error()) {
			notes = append(notes, err.Error())
		}
		return path
	}
	if y.fetch != nil {
		options.Fetch = func(id string) string { return fetch("debuginfo", id) }
	}
	path, gone := strings.CutSuffix(f.Name, deleted)
	if !strings.HasPrefix(path, "/") {
		return missing("%s is not the path of a file", f.Name)
	}
	var errs []error
	candidates := []string{c.rooted(filepath.Clean(path))}
	if gone && f.BuildID == "" {
		candidates = nil
		errs = append(errs, fmt.Errorf("%s was deleted before the recording's end, and there is no build id to find it by", path))
	}
	candidates = append(candidates, c.byBuildID(f.BuildID)...)
	for _, kind := range []string{"", "executable", "debuginfo"} {
		if kind != "" {
			candidates = nil
			if path := fetch(kind, f.BuildID); path != "" {
				candidates = []string{path}
			}
		}
		im, err := c.openFirst(candidates, options, f.BuildID != "")
		if im != nil {
			im.status.Notes = notes
			return im
		}
		errs = append(errs, err...)
	}
	return &image{status: Status{Err: errors.Join(errs...), Notes: notes}}
}

// openFirst opens the first of several files that can be opened.
func (c Config) openFirst(candidates []string, options object.Options, verified bool) (*image, []error) {
	var errs []error
	for _, path := range candidates {
		o, err := c.openObject(path, options)
		if err == nil {
			return &image{object: o, status: Status{Path: path, DebugPath: o.DebugPath, Verified: verified}}, nil
		}
		// Errors of other candidates matter only if these exist.
		if len(errs) == 0 || !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return nil, errs
}

// openObject opens a file, or takes one that is open.
func (c Config) openObject(path string, o object.Options) (*object.Object, error) {
	if c.Opened != nil {
		return c.Opened.Open(path, o)
	}
	return object.Open(path, o)
}

// byBuildID returns where files of a build id may be.
func (c Config) byBuildID(id string) []string {
	if len(id) < 4 || !isHex(id) {
		return nil
	}
	var list []string
	if c.BuildIDCache != "" {
		link := filepath.Join(c.BuildIDCache, ".build-id", id[:2], id[2:])
		list = append(list, filepath.Join(link, "elf"), link) // perf since 4.12, and before
	}
	for _, d := range c.Debug {
		list = append(list, filepath.Join(c.rooted(d), ".build-id", id[:2], id[2:]+".debug"))
	}
	return list
}

// isHex says whether a build id is one, and so can be a part of a path.
func isHex(id string) bool { return strings.Trim(id, "0123456789abcdef") == "" }

// openPerfMap reads the names of code made at run time.
func (c Config) openPerfMap(f *File) *image {
	path := c.rooted(f.Name)
	t, note, err := openPerfMap(path)
	if errors.Is(err, os.ErrNotExist) {
		return missing("code made at run time, and no %s with its names", path)
	}
	if err != nil {
		return &image{status: Status{Err: err}}
	}
	im := &image{table: t, status: Status{Path: path}}
	if note != "" {
		im.status.Notes = []string{note}
	}
	return im
}

func (c Config) imageOfJitdump(f *File) *image {
	path := c.rooted(f.Name)
	d, err := object.OpenJitdump(path)
	if err != nil {
		return &image{status: Status{Err: err}}
	}
	im := &image{dump: d, path: path, status: Status{Path: path}}
	if d.ArchTime {
		im.status.Notes = append(im.status.Notes, path+": its times are of another clock than the recording's, so that its code cannot be placed")
	}
	if d.Truncated {
		im.status.Notes = append(im.status.Notes, path+" ends in the middle of a record")
	}
	return im
}

// openVDSO finds the code that the kernel gives to every process: in perf's
// cache, or in this process if it is the same.
func (c Config) openVDSO(f *File) *image {
	if strings.HasPrefix(f.Name, "[vsyscall") || f.Name == "[uprobes]" {
		return missing("%s is in no file", f.Name)
	}
	for _, path := range c.cached("[vdso]", f.BuildID, "vdso") {
		if o, err := object.Open(path, c.options(f.BuildID)); err == nil {
			return &image{object: o, status: Status{Path: path, Verified: f.BuildID != ""}}
		}
	}
	if c.Root != "" {
		return missing("the vdso of another system")
	}
	data, err := ownVDSO()
	if err != nil {
		return missing("the vdso: %w", err)
	}
	o, err := object.FromMemory("[vdso]", data, c.options(f.BuildID))
	if err != nil {
		return &image{status: Status{Err: err}}
	}
	return &image{object: o, status: Status{Path: "[vdso]", Verified: f.BuildID != ""}}
}

// cached returns the path of something that is no file in perf's cache.
func (c Config) cached(name, id, file string) []string {
	if c.BuildIDCache == "" || id == "" || !isHex(id) {
		return nil
	}
	return []string{filepath.Join(c.BuildIDCache, name, id, file)}
}
