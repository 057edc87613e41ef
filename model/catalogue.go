package model

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/cyclestack/cyclestack/internal/packed"
	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// A Catalogue holds the processors, their event tables and the models.
//
// It reads little at first: the processors and the heads of the model files. A
// model, an event table or a text is read when it is asked for. All methods but
// [Catalogue.Add] may be called from several goroutines at once.
type Catalogue struct {
	lib   *library
	added []source // the user's own, which hide the library's of the same name and processor

	mu     sync.Mutex
	models map[modelKey]loadResult
}

type modelKey struct{ file, cpu string }

type loadResult struct {
	m   *Model
	err error
}

// A library is a folder of files laid out as data/ is:
//
//	cpus.toml            the processors
//	texts.toml           titles and explanations that models share
//	texts/*.toml         the same for the models of one name
//	judgement.toml       what is expected of nodes, and which of them belong together
//	models/…/*.toml      the models; what another extends is named by its path without .toml
//	models/loops/*.toml  nodes for hot loops, put into methods of the file's name
//	models/loops/*.toml  nodes for hot loops, which reports put into the methods of the file's name
//	events/*.csv         the event tables; those of a layout's name (intel.csv) hold its processors only
//	relations/*.toml     what holds between the counts of events: any.toml, and one file for each layout
//	relations/errata.csv events that count wrongly
type library struct {
	fsys    fs.FS
	cpus    []CPU
	sources []source // of models, in the order of their paths

	judgement func() (*judgement, error)
	tables    memo[*EventTable] // by name of the processor
	tableText memo[[]byte]      // by file
	texts     memo[texts]       // by file
}

// A memo keeps what was read, by name. Each is read once, whoever asks.
type memo[T any] struct {
	mu   sync.Mutex
	read map[string]func() (T, error)
}

// get returns what read returns for a name the first time.
func (m *memo[T]) get(name string, read func() (T, error)) (T, error) {
	m.mu.Lock()
	once, ok := m.read[name]
	if !ok {
		if m.read == nil {
			m.read = map[string]func() (T, error){}
		}
		once = sync.OnceValues(read)
		m.read[name] = once
	}
	m.mu.Unlock()
	return once()
}

// A ModelInfo is what the head of a model's file says, which is known without
// reading the rest of it.
type ModelInfo struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Title   string   `json:"title"`
	CPUs    []string `json:"cpus"`
	File    string   `json:"file"`
	Own     bool     `json:"own,omitempty"` // the user's, and not of the catalogue
}

// A source is a file that holds a model.
type source struct {
	ModelInfo
	fsys   fs.FS
	dir    string // folder of the models in fsys
	stem   string // path below dir, without .toml
	line   int    // of the key "cpus"
	faults Errors // of the head
}

// Embedded returns the catalogue that is part of the program. What is added to
// it is not in the one that the next call returns.
func Embedded() (*Catalogue, error) {
	lib, err := embeddedLibrary()
	if err != nil {
		return nil, err
	}
	return &Catalogue{lib: lib}, nil
}

// Load returns the catalogue of the files in fsys, laid out as the folder data of this
// package: cpus.toml, texts.toml, judgement.toml, models, events and relations. Only
// cpus.toml must exist.
func Load(fsys fs.FS) (*Catalogue, error) {
	lib, err := openLibrary(fsys)
	if err != nil {
		return nil, err
	}
	if err := lib.checkIDs(); err != nil {
		return nil, err
	}
	return &Catalogue{lib: lib}, nil
}

func openLibrary(fsys fs.FS) (*library, error) {
	lib := &library{fsys: fsys}
	lib.judgement = sync.OnceValues(func() (*judgement, error) { return readJudgement(fsys, judgementFile) })
	var err error
	if lib.cpus, err = readCPUs(fsys, cpusFile, cpusFile); err != nil {
		return nil, err
	}
	if lib.sources, err = lib.scanModels(fsys, modelsDir, ""); err != nil {
		return nil, err
	}
	if err := faultsOf(lib.sources); err != nil {
		return nil, err
	}
	return lib, lib.checkSources()
}

// checkSources makes sure that a name and a processor choose one model.
func (lib *library) checkSources() error {
	type key struct{ name, cpu string }
	first := map[key]string{}
	for i := range lib.sources {
		s := &lib.sources[i]
		for _, cpu := range s.CPUs {
			k := key{s.Name, cpu}
			if file, ok := first[k]; ok {
				return &Error{File: s.File, Line: s.line, Msg: fmt.Sprintf("cpus: processor %q has a model %q already, in %s", cpu, s.Name, file)}
			}
			first[k] = s.File
		}
	}
	return nil
}

// modelsDir is the folder of the models in a library.
const modelsDir = "models"

// maxModelFiles bounds a folder of models.
const maxModelFiles = 10_000

// scanModels reads the heads of the model files below dir. The faults of a head are in
// its source. Messages name the files with prefix before them.
func (lib *library) scanModels(fsys fs.FS, dir, prefix string) ([]source, error) {
	var sources []source
	r := new(headReader)
	err := fs.WalkDir(fsys, dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == dir:
			return fs.SkipAll
		case err != nil:
			return err
		case d.IsDir() || path.Ext(name) != ".toml" || name == cpusFile:
			return nil
		case len(sources) == maxModelFiles:
			return fmt.Errorf("%s: more than %d model files", dir, maxModelFiles)
		}
		stem := strings.TrimSuffix(name, ".toml")
		if dir != "." {
			stem = strings.TrimPrefix(stem, dir+"/")
		}
		s := source{fsys: fsys, dir: dir, stem: stem}
		s.File = filepath.Join(prefix, filepath.FromSlash(name))
		if prefix == "" {
			s.File = name
		}
		err = lib.scanHead(r, &s)
		sources = append(sources, s)
		return err
	})
	return sources, err
}

// faultsOf returns the faults in the heads of sources.
func faultsOf(sources []source) error {
	var all Errors
	for i := range sources {
		all = append(all, sources[i].faults...)
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// A headReader reads the heads of model files, one after the other. Most are in
// the first bytes of the file.
type headReader struct {
	parser unstable.Parser
	buf    [headSize]byte
	bases  map[string]head // of the library's files that others extend, by stem
}

const headSize = 4096

// scanHead reads the head of a model file: the keys before its first table. What it does
// not state is that of the file it extends, which is read only if something is missing.
// Faults go to s.faults; the error is about files that cannot be read.
func (lib *library) scanHead(r *headReader, s *source) error {
	err := lib.chainHeads(r, s)
	if faults := asFaults(err); faults != nil {
		s.faults, err = faults, nil
	}
	known := s.CPUs[:0:0]
	for _, cpu := range s.CPUs {
		if lib.named(cpu) != nil {
			known = append(known, cpu)
			continue
		}
		s.faults = append(s.faults, &Error{File: s.File, Line: s.line, Msg: "cpus: " + lib.unknownCPU(cpu).Error()})
	}
	if len(known) < len(s.CPUs) {
		s.CPUs = known
	}
	return err
}

// chainHeads reads a head and, as far as it is not complete, those of the files it extends.
func (lib *library) chainHeads(r *headReader, s *source) error {
	h, err := r.read(s.fsys, s.path(), s.File)
	if err != nil {
		return err
	}
	s.line = h.cpusLine
	for at, c := s.File, s.chain(); ; {
		s.Name = cmp.Or(s.Name, h.Name)
		s.Version = cmp.Or(s.Version, h.Version)
		s.Title = cmp.Or(s.Title, h.Title)
		if s.CPUs == nil {
			s.CPUs = h.CPUs
		}
		if h.Extends == "" || s.complete() {
			return nil
		}
		if c, err = lib.follow(s, c, h.Extends); err != nil {
			return &Error{File: at, Line: h.extendsLine, Msg: err.Error()}
		}
		last := c[len(c)-1]
		at = s.label(last)
		if h, err = r.base(lib, s, last, at); err != nil {
			return err
		}
	}
}

// complete reports whether all is known that a head can say.
func (s *source) complete() bool {
	return s.Name != "" && s.Version != "" && s.Title != "" && s.CPUs != nil
}

func (s *source) path() string { return path.Join(s.dir, s.stem+".toml") }

// A link is a file in a chain of files that extend each other: of the user's
// folder, or of the library.
type link struct {
	own  bool
	stem string
}

// chain returns the beginning of the chain of what a model extends.
func (s *source) chain() []link { return []link{{s.dir != modelsDir, s.stem}} }

// follow adds to a chain the file that its last one extends: the file of that stem in the
// user's folder, or else in the library.
func (lib *library) follow(s *source, chain []link, stem string) ([]link, error) {
	if !fs.ValidPath(stem + ".toml") {
		return nil, fmt.Errorf("extends: %q is not the path of a model file without .toml", spelling.Clip(stem))
	}
	last := chain[len(chain)-1]
	next := link{stem: stem}
	if own := (link{true, stem}); last.own && last != own && exists(lib.place(s, own)) {
		next = own
	}
	switch {
	case next == last:
		return nil, fmt.Errorf("extends: %s.toml extends itself", spelling.Clip(stem))
	case last == link{true, stem} && !exists(lib.place(s, next)):
		return nil, fmt.Errorf("extends: %s.toml extends itself, as the catalogue has none of that name", spelling.Clip(stem))
	case !exists(lib.place(s, next)):
		return nil, fmt.Errorf("extends: there is no model file %s.toml, neither next to this one nor in the catalogue", spelling.Clip(stem))
	case slices.Contains(chain, next):
		return nil, fmt.Errorf("extends: %s.toml extends itself, by way of %s.toml", spelling.Clip(stem), spelling.Clip(last.stem))
	case len(chain) > maxExtends:
		return nil, fmt.Errorf("extends: a chain of more than %d files", maxExtends)
	}
	return append(chain, next), nil
}

// place returns where the file of a link is.
func (lib *library) place(s *source, l link) (fs.FS, string) {
	if l.own {
		return s.fsys, l.stem + ".toml"
	}
	return lib.fsys, path.Join(modelsDir, l.stem+".toml")
}

// label returns what messages call the file of a link: the user's by its path.
func (s *source) label(l link) string {
	if l.own {
		return strings.TrimSuffix(s.File, s.stem+".toml") + l.stem + ".toml"
	}
	return path.Join(modelsDir, l.stem+".toml")
}

func exists(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// A head is what the keys before the first table of a model file say.
type head struct {
	Name, Version, Title, Extends string
	CPUs                          []string
	cpusLine, extendsLine         int
}

// base reads the head of a file that another extends. Those of the library are
// kept, for one file is the base of many.
func (r *headReader) base(lib *library, s *source, l link, file string) (head, error) {
	if h, ok := r.bases[l.stem]; ok && !l.own {
		return h, nil
	}
	fsys, name := lib.place(s, l)
	h, err := r.read(fsys, name, file)
	if err == nil && !l.own {
		if r.bases == nil {
			r.bases = map[string]head{}
		}
		r.bases[l.stem] = h
	}
	return h, err
}

func (r *headReader) read(fsys fs.FS, name, file string) (head, error) {
	if _, ok := fsys.(packed.FS); ok {
		h, _, err := r.parse(headsOf()[name])
		return h, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return head{}, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, r.buf[:])
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return head{}, err
	}
	h, whole, err := r.parse(r.buf[:n:n])
	if n < len(r.buf) || whole && err == nil {
		return h, r.explain(err, r.buf[:n:n], file)
	}
	data, err := readFile(fsys, name)
	if err != nil {
		return head{}, err
	}
	h, _, err = r.parse(data)
	return h, r.explain(err, data, file)
}

// explain returns the error of a head with its line, which the parser does not
// give.
func (r *headReader) explain(err error, data []byte, file string) error {
	if err == nil {
		return nil
	}
	return syntaxFault(data, file, err)
}

// parse reads the keys of interest before the first table, and reports whether it has
// read all of these.
func (r *headReader) parse(data []byte) (h head, whole bool, err error) {
	h.cpusLine, h.extendsLine = 1, 1
	lines := newLineCounter(data)
	r.parser.Reset(data)
	for !h.complete() && r.parser.NextExpression() {
		n := r.parser.Expression()
		if n.Kind != unstable.KeyValue {
			return h, true, nil
		}
		keys := n.Key()
		keys.Next()
		key := string(keys.Node().Data)
		if to := fieldOf(&h, key); to != nil && !keys.IsLast() {
			continue // a dotted key, which is not one of these
		} else if to != nil {
			new(values).assign(to, n.Value()) // if that fails, it does so again when the model is read
		}
		switch key {
		case "cpus":
			h.cpusLine = lines.at(int(keys.Node().Raw.Offset))
		case "extends":
			h.extendsLine = lines.at(int(keys.Node().Raw.Offset))
		}
	}
	return h, h.complete(), r.parser.Error()
}

// complete reports whether a head says all that it can about its model; what
// the model extends does not matter then.
func (h *head) complete() bool {
	return h.Name != "" && h.Version != "" && h.Title != "" && h.CPUs != nil
}

// Models returns the models for a processor by its name, the default one
// first; for "", all of them. The user's own come before the catalogue's.
func (c *Catalogue) Models(cpu string) []ModelInfo {
	var out []ModelInfo
	for _, s := range c.sources(cpu) {
		out = append(out, s.ModelInfo)
	}
	return out
}

// sources returns the sources of Models. Of two that have a model of one name
// for the processor, only the first counts.
func (c *Catalogue) sources(cpu string) []*source {
	var out []*source
	seen := map[string]bool{}
	for _, list := range [][]source{c.added, c.lib.sources} {
		for i := range list {
			s := &list[i]
			if len(s.CPUs) == 0 || cpu != "" && (seen[s.Name] || !slices.Contains(s.CPUs, cpu)) {
				continue
			}
			seen[s.Name] = true
			out = append(out, s)
		}
	}
	if p := c.lib.named(cpu); p != nil && p.Model != "" {
		sorting.Stable(out, func(x, y *source) int {
			return order(x.Name == p.Model, y.Name == p.Model)
		})
	}
	return out
}

// order puts true before false.
func order(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// Model returns a model for a processor, which is named as for
// [Catalogue.CPU]; name "" is the processor's default model. The errors are
// those of CPU, *[UnknownModelError] and, for faults in the file, [Errors].
func (c *Catalogue) Model(name, cpu string) (*Model, error) {
	p := c.lib.named(cpu)
	if p == nil {
		found, err := c.CPU(cpu)
		if err != nil {
			return nil, err
		}
		p = found
	}
	unknown := &UnknownModelError{Name: name, CPU: p.Name}
	for _, s := range c.sources(p.Name) {
		if name == "" || s.Name == name {
			return c.load(s, p)
		}
		unknown.Have = append(unknown.Have, s.Name)
	}
	return nil, unknown
}

// load returns the model in a source for one of its processors.
func (c *Catalogue) load(s *source, p *CPU) (*Model, error) {
	k := modelKey{s.File, p.Name}
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.models[k]
	if !ok {
		if c.models == nil {
			c.models = map[modelKey]loadResult{}
		}
		l.m, l.err = c.lib.read(s, p)
		c.models[k] = l
	}
	return l.m, l.err
}

// read reads the model in a source for one of its processors: with what it
// extends, the texts it shares, and the processor's values of its parameters.
func (lib *library) read(s *source, p *CPU) (*Model, error) {
	m, err := lib.readAll(s, p)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// readAll is read for a model with faults too: with [Errors] it returns the model as far
// as it can be made, nil if it cannot. p may be nil for a model of no known processor.
func (lib *library) readAll(s *source, p *CPU) (*Model, error) { return lib.readOver(s, p, nil) }

// readOver is readAll with what a file states put over it; nil is nothing.
func (lib *library) readOver(s *source, p *CPU, over *modelFile) (*Model, error) {
	if p != nil && p.Events != "" {
		go lib.events(p) // meanwhile: they are needed below, and take as long as the model itself
	}
	f, err := lib.decode(s.fsys, s.path(), s.File)
	if f == nil {
		return nil, err
	}
	faults := asFaults(err)
	c := s.chain()
	f, err = resolve(f, func(stem string) (*modelFile, error) {
		var err error
		if c, err = lib.follow(s, c, stem); err != nil {
			return nil, err
		}
		fsys, name := lib.place(s, c[len(c)-1])
		return lib.decode(fsys, name, s.label(c[len(c)-1]))
	})
	if f == nil {
		return nil, faults.with(err)
	}
	faults = append(faults, asFaults(err)...)
	if over != nil {
		f = over.below(f).extend(f, &faults)
	}
	m, more := build(f, s.File)
	faults = append(faults, more...)
	if err := lib.explain(m); err != nil {
		return nil, err
	}
	judged, err := lib.judgement()
	if err != nil {
		return nil, err
	}
	judged.apply(m)
	if p != nil {
		faults = append(faults, p.parameters(m)...)
	}
	if p != nil && over == nil { // what is put over it names counts that are no processor's
		more, err := lib.bind(m, p)
		if err != nil { // of the event tables
			return m, faults.with(err)
		}
		faults = append(faults, more...)
	}
	if len(faults) > 0 {
		faults.sort()
		return m, faults
	}
	return m, nil
}

// parameters gives a model's parameters the processor's values.
func (p *CPU) parameters(m *Model) (faults Errors) {
	for i := range m.Parameters {
		par := &m.Parameters[i]
		if v, ok := p.Params[par.Name]; ok && par.Value == nil {
			if err := par.Check(v); err != nil {
				faults = append(faults, p.at.errorf("processor %s: params: %s: %v", p.Name, par.Name, err))
			}
			par.Value = &v
		}
	}
	return faults
}

// decode decodes a model file; with faults it returns what could be decoded, nil for a
// file that is not TOML.
func (lib *library) decode(fsys fs.FS, name, file string) (*modelFile, error) {
	data, err := readFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return decodeModel(data, file)
}

// CPUs returns all processors in the order of matching identifications, the user's own
// first.
func (c *Catalogue) CPUs() []*CPU {
	out := make([]*CPU, len(c.lib.cpus))
	for i := range c.lib.cpus {
		out[i] = &c.lib.cpus[i]
	}
	return out
}

// Events returns the event table of a processor.
func (c *Catalogue) Events(p *CPU) (*EventTable, error) { return c.lib.events(p) }
