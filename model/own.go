package model

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An ownFolder is one of the user's own, with processors: cpus.toml, events/*.csv and models.
type ownFolder struct {
	fsys fs.FS
	path string
}

// label is what messages call a file of the folder.
func (f *ownFolder) label(name string) string { return filepath.Join(f.path, filepath.FromSlash(name)) }

// Add adds the user's own models and processors. Each path is a model file or a folder:
// of models and, if it has a file cpus.toml, of processors with their events (events/*.csv).
// They hide those of the same name, and models only those for the same processor. A model
// may extend one of its folder or of the catalogue. Faults are returned as [Errors].
func (c *Catalogue) Add(paths ...string) error {
	for _, p := range paths {
		lib, sources, err := c.lib.open(p)
		if err != nil {
			return err
		}
		if err := faultsOf(sources); err != nil {
			return err
		}
		own := Catalogue{lib: lib}
		for i := range sources {
			s := &sources[i]
			if len(s.CPUs) == 0 {
				continue // only for others to extend
			}
			if _, err := own.load(s, lib.named(s.CPUs[0])); err != nil {
				return err
			}
		}
		if lib != c.lib { // with other processors, events of models may be others
			c.lib, c.models = lib, nil
		}
		c.added = append(sources, c.added...)
	}
	return nil
}

// open reads the heads of the user's model file, or folder of them, and the processors in
// the folder: the library that it returns has these too. With [Errors], which are those of
// the processors, it returns what could be read.
func (lib *library) open(p string) (*library, []source, error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		s, err := lib.openFile(p)
		return lib, []source{s}, err
	}
	f := &ownFolder{fsys: os.DirFS(p), path: p}
	var faults error
	if exists(f.fsys, cpusFile) {
		lib, faults = lib.with(f)
		if faults != nil && asFaults(faults) == nil {
			return nil, nil, faults
		}
	}
	sources, err := lib.scanModels(f.fsys, ".", p)
	if err != nil {
		return nil, nil, err
	}
	for i := range sources {
		sources[i].Own = true
	}
	return lib, sources, faults
}

// openFile reads the head of a single model file.
func (lib *library) openFile(p string) (source, error) {
	dir, name := filepath.Split(p)
	s := source{fsys: os.DirFS(cmp.Or(dir, ".")), dir: ".", stem: strings.TrimSuffix(name, ".toml")}
	s.File, s.Own = p, true
	if s.stem == name {
		return s, fmt.Errorf("%s: the name of a model file ends in .toml", p)
	}
	err := lib.scanHead(new(headReader), &s)
	if err == nil && len(s.CPUs) == 0 && s.faults == nil {
		s.faults = Errors{{File: p, Line: 1, Msg: "cpus: the model does not say which processors it is for"}}
	}
	return s, err
}

// with returns the library with the processors of a folder before its own. With [Errors]
// it returns those that could be read.
func (lib *library) with(f *ownFolder) (*library, error) {
	cpus, err := readCPUs(f.fsys, cpusFile, f.label(cpusFile))
	for i := range cpus {
		cpus[i].folder = f
	}
	all := &library{fsys: lib.fsys, sources: lib.sources, judgement: lib.judgement, cpus: slices.Concat(cpus, lib.cpus)}
	if err == nil {
		err = all.checkIDs()
	}
	return all, err
}
