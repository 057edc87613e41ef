package object

import (
	"bytes"
	"debug/elf"
	"hash/crc32"
	"path/filepath"
)

// openDebug looks for the separate debug file: by build id, then by the name in
// .gnu_debuglink, as GDB does ("Debugging Information in Separate Files").
func (o *Object) openDebug() {
	for _, dir := range o.options.Debug {
		if len(o.BuildID) < 4 {
			break
		}
		path := filepath.Join(dir, ".build-id", o.BuildID[:2], o.BuildID[2:]+".debug")
		if f, err := openELF(path); err == nil {
			if f.buildID() == o.BuildID {
				o.useDebug(f)
				return
			}
			f.Close()
		}
	}
	if o.followLink(); o.debug != nil || o.options.Fetch == nil || o.BuildID == "" {
		return
	}
	if f, err := openELF(o.options.Fetch(o.BuildID)); err == nil {
		if f.buildID() == o.BuildID {
			o.useDebug(f)
			return
		}
		f.Close()
	}
}

// useDebug takes a file as the separate debug file.
func (o *Object) useDebug(f *elfFile) { o.debug, o.DebugPath = f, f.path }

// followLink looks for the file that .gnu_debuglink names, and checks its checksum.
func (o *Object) followLink() {
	name, sum, ok := o.main.debugLink()
	if !ok {
		return
	}
	dir := filepath.Dir(o.Path)
	places := []string{filepath.Join(dir, name), filepath.Join(dir, ".debug", name)}
	for _, d := range o.options.Debug {
		places = append(places, filepath.Join(d, dir, name))
	}
	for _, path := range places {
		if path == o.Path {
			continue
		}
		f, err := openELF(path)
		if err != nil {
			continue
		}
		if f.checksum() == sum {
			o.useDebug(f)
			return
		}
		o.note("%s is the debug file of another build", path)
		f.Close()
	}
}

// checksum returns the CRC-32 of the file, or 0 if it cannot be read.
func (f *elfFile) checksum() (sum uint32) {
	err := protect(func() error {
		sum = crc32.ChecksumIEEE(f.data)
		return nil
	})
	if err != nil {
		return 0
	}
	return sum
}

// debugLink reads .gnu_debuglink: a file name without directory, padded to four
// bytes, and the file's CRC-32.
func (f *elfFile) debugLink() (name string, sum uint32, ok bool) {
	s := f.Section(".gnu_debuglink")
	if s == nil || s.Flags&elf.SHF_COMPRESSED != 0 {
		return "", 0, false
	}
	data, err := f.raw(s)
	end := bytes.IndexByte(data, 0)
	if err != nil || end <= 0 {
		return "", 0, false
	}
	at := (end + 4) &^ 3
	if at+4 > len(data) || filepath.Base(string(data[:end])) != string(data[:end]) {
		return "", 0, false
	}
	return string(data[:end]), f.ByteOrder.Uint32(data[at:]), true
}
