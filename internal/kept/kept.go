// Package kept keeps the last measured runs, in a directory of the user's own that nobody else
// may read. A run is a directory with an account, as JSON, and what was sampled or simulated.
//
//	s, err := kept.Open(os.UserCacheDir)
//	run, err := s.New()
//	f, err := run.Create(kept.Samples)
//	…
//	err = run.Keep()
//	last := s.Runs()[0]
package kept

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// Bounds on what is kept: so many runs, and so many bytes of all.
const (
	runsMost  = 20
	bytesMost = 256 << 20
)

// The files of a run.
const (
	Account   = "account.json"   // the account, as stat --format json writes it
	Samples   = "perf.data"      // samples by the clock
	Simulated = "callgrind.data" // what was simulated
	again     = "again.json"     // the end of the command line that measures the same again
)

// againMost bounds a command line.
const againMost = 1 << 20

// A Store is where runs are kept.
type Store struct{ dir string }

// Open returns the store below the user's cache directory, and makes its directories. It is
// an error if another user owns it, or may read it.
func Open(cache func() (string, error)) (*Store, error) {
	dir, err := place(cache, "runs")
	if err != nil {
		return nil, err
	}
	return &Store{dir}, nil
}

// place returns a directory below the user's cache directory, and makes it.
func place(cache func() (string, error), name string) (string, error) {
	if cache == nil {
		return "", errors.New("there is no cache directory")
	}
	top, err := cache()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(top, "cyclestack", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, private(dir)
}

// private refuses a directory that is not this user's alone. The permissions of one that is
// this user's are corrected.
func private(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !own(info):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm() != 0o700:
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// A Run is a run that was kept.
type Run struct {
	Dir  string
	Time time.Time // of its end
	size int64
	has  []string
}

// Path returns the path of a file of the run; "" if the run does not have it.
func (r *Run) Path(name string) string {
	if !slices.Contains(r.has, name) {
		return ""
	}
	return filepath.Join(r.Dir, name)
}

// Again returns the end of the command line that measures the same again; nil if that is
// not known.
func (r *Run) Again() []string {
	f, err := os.Open(filepath.Join(r.Dir, again))
	if err != nil {
		return nil
	}
	defer f.Close()
	var words []string
	if json.NewDecoder(io.LimitReader(f, againMost)).Decode(&words) != nil {
		return nil
	}
	return words
}

// Runs returns the runs, the last first; none of a nil store. What is no run is passed over.
func (s *Store) Runs() []Run {
	if s == nil {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil
	}
	var runs []Run
	for _, e := range entries {
		when, err := time.Parse(layout, firstOf(e.Name()))
		if err != nil || !e.IsDir() || strings.HasSuffix(e.Name(), unfinished) {
			continue
		}
		r := Run{Dir: filepath.Join(s.dir, e.Name()), Time: when}
		for _, name := range []string{Account, Samples, Simulated} {
			if info, err := os.Lstat(filepath.Join(r.Dir, name)); err == nil && info.Mode().IsRegular() {
				r.has, r.size = append(r.has, name), r.size+info.Size()
			}
		}
		if len(r.has) > 0 {
			runs = append(runs, r)
		}
	}
	sorting.Stable(runs, func(a, b Run) int { return strings.Compare(b.Dir, a.Dir) })
	return runs
}

// layout is how the name of a run's directory begins; the process that measured follows.
const layout = "20060102T150405.000000"

// NameOf names the run that a file was kept of, by its time. It returns the name of any
// other file as it is.
func NameOf(file string) string {
	when, err := time.Parse(layout, firstOf(filepath.Base(filepath.Dir(file))))
	if err != nil || !slices.Contains([]string{Account, Samples, Simulated}, filepath.Base(file)) {
		return file
	}
	return "the run of " + when.Local().Format("15:04:05")
}

func firstOf(name string) string {
	first, _, _ := strings.Cut(name, "-")
	return first
}

// unfinished is the end of the name of a run that is still measured.
const unfinished = ".new"

// A NewRun is a run that is measured.
type NewRun struct {
	store *Store
	dir   string
}

// New begins a run.
func (s *Store) New() (*NewRun, error) {
	dir, err := os.MkdirTemp(s.dir, "*"+unfinished)
	if err != nil {
		return nil, err
	}
	return &NewRun{s, dir}, nil
}

// Create creates a file of the run.
func (r *NewRun) Create(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(r.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// Write writes a file of the run.
func (r *NewRun) Write(name string, write func(io.Writer) error) error {
	f, err := r.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// Again notes the end of the command line that measures the same again.
func (r *NewRun) Again(words []string) error {
	return r.Write(again, func(w io.Writer) error { return json.NewEncoder(w).Encode(words) })
}

// Keep ends the run, and removes the oldest ones if there is no more room for them.
func (r *NewRun) Keep() error {
	name := fmt.Sprintf("%s-%d", time.Now().UTC().Format(layout), os.Getpid())
	if err := os.Rename(r.dir, filepath.Join(r.store.dir, name)); err != nil {
		return errors.Join(err, r.Discard())
	}
	r.store.prune()
	return nil
}

// Discard removes the run.
func (r *NewRun) Discard() error { return os.RemoveAll(r.dir) }

// staleAfter is when a run that was not ended is taken for one whose process has been
// killed.
const staleAfter = 7 * 24 * time.Hour

// prune removes what there is no room for. The last run stays, whatever its size.
func (s *Store) prune() {
	total := int64(0)
	for i, r := range s.Runs() {
		total += r.size
		if i >= runsMost || i > 0 && total > bytesMost {
			_ = os.RemoveAll(r.Dir)
		}
	}
	stale, err := filepath.Glob(filepath.Join(s.dir, "*"+unfinished))
	if err != nil {
		return
	}
	for _, dir := range stale {
		if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(dir)
		}
	}
}

// Places is the file of a run with places in the code: samples, or what was simulated; "" if it
// has none.
func (r *Run) Places() string { return cmp.Or(r.Path(Samples), r.Path(Simulated)) }

// A Found is the last thing that was measured: a run of the store, or a file in the working
// directory.
type Found struct {
	Run   *Run
	File  string // "" for a run
	Time  time.Time
	Older bool // a later run has no places in the code, which were asked for
}

// Last returns what was measured last: a run of the store, which may be nil, or one of the
// named files in the working directory. It is nil if there is none. If places in the code are
// asked for, runs without them are left out.
func Last(s *Store, places bool, files ...string) *Found {
	var last *Found
	runs := s.Runs()
	for i := range runs {
		if !places || runs[i].Places() != "" {
			last = &Found{Run: &runs[i], Time: runs[i].Time, Older: i > 0}
			break
		}
	}
	for _, name := range files {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err != nil || !info.Mode().IsRegular():
		case last == nil || info.ModTime().After(last.Time):
			last = &Found{File: name, Time: info.ModTime()}
		}
	}
	return last
}
