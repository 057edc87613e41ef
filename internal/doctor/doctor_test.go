package doctor

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/cyclestack/cyclestack/internal/measure"
)

// A settingFS has files that end after the first read, as the kernel's settings do.
type settingFS struct{ files fstest.MapFS }

func (s settingFS) Open(name string) (fs.File, error) {
	f, err := s.files.Open(name)
	return &settingFile{File: f}, err
}

type settingFile struct {
	fs.File
	read bool
}

func (f *settingFile) Read(b []byte) (int, error) {
	if f.read {
		return 0, nil
	}
	f.read = true
	return f.File.Read(b)
}

// TestSettingOfSeveralDigits reads a setting in one piece.
func TestSettingOfSeveralDigits(t *testing.T) {
	root := settingFS{fstest.MapFS{"proc/sys/kernel/perf_event_mlock_kb": {Data: []byte("516\n")}}}
	x := &examination{Machine: &measure.Machine{Root: root}}
	if got := x.read("proc/sys/kernel/perf_event_mlock_kb"); got != "516" {
		t.Errorf("it reads %q", got)
	}
}
