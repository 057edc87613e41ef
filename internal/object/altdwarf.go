package object

import (
	"bytes"
	"debug/dwarf"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// An altFile is the file that several debug files share information with, as dwz makes it.
type altFile struct {
	file *elfFile
	data *dwarf.Data
	str  []byte
}

// alt returns the shared file of the debug information, or nil if it is not found.
func (o *Object) alt() *altFile {
	if o.searchedAlt {
		return o.altFile
	}
	o.searchedAlt = true
	f := o.debugSource()
	if !f.has(altLink) && !f.has(supplement) {
		return nil
	}
	err := distrust("the shared debug information", func() (err error) {
		o.altFile, err = o.openAlt(f)
		return err
	})
	if err != nil {
		o.altFile = nil
		o.note("%s shares debug information with another file: %v", f.path, err)
	}
	return o.altFile
}

// The sections that name the shared file: GNU's, and DWARF 5's. The second is in the shared
// file as well.
const (
	altLink    = ".gnu_debugaltlink"
	supplement = ".debug_sup"
)

// sharedName returns the path of the shared file, and its build id or checksum.
func (f *elfFile) sharedName() (name, id []byte, err error) {
	link, err := f.contents(altLink)
	if err != nil {
		return nil, nil, err
	}
	if len(link) == 0 {
		if link, err = f.contents(supplement); err != nil || len(link) < 3 {
			return nil, nil, errAltLink
		}
		link = link[3:] // the version, and whether this is the shared file
	}
	name, id, ok := bytes.Cut(link, []byte{0})
	if !f.has(altLink) && len(id) > 0 {
		id = id[1:] // its length
	}
	if !ok || len(name) == 0 || len(id) < 2 {
		return nil, nil, errAltLink
	}
	return name, id, nil
}

// checksum5 returns the checksum that DWARF 5's shared file has of itself, or "".
func (f *elfFile) checksum5() string {
	data, err := f.contents(supplement)
	if err != nil || len(data) < 5 || data[2] != 1 || data[3] != 0 {
		return ""
	}
	return hex.EncodeToString(data[5:])
}

var errAltLink = errors.New("the link is broken")

// openAlt looks for the file with shared information.
func (o *Object) openAlt(f *elfFile) (*altFile, error) {
	name, id, err := f.sharedName()
	if err != nil {
		return nil, err
	}
	want := hex.EncodeToString(id)
	var paths []string
	if path := string(name); filepath.IsAbs(path) {
		paths = append(paths, o.options.rooted(path))
	} else {
		paths = append(paths, filepath.Join(filepath.Dir(f.path), path))
	}
	_, rest, shared := strings.Cut(string(name), "/.dwz/")
	for _, d := range o.options.Debug {
		paths = append(paths, filepath.Join(d, ".build-id", want[:2], want[2:]+".debug"))
		if shared {
			paths = append(paths, filepath.Join(d, ".dwz", filepath.Clean("/"+rest)))
		}
	}
	for _, path := range paths {
		a, openErr := openELF(path)
		if openErr != nil {
			err = openErr
			continue
		}
		if a.buildID() != want && a.checksum5() != want {
			err = fmt.Errorf("%s: %w", path, ErrBuildID)
			a.Close()
			continue
		}
		alt := &altFile{file: a}
		if err = alt.read(); err == nil {
			return alt, nil
		}
		a.Close()
	}
	return nil, err
}

// resolveTexts puts texts of the shared file into the entry of a unit.
func (o *Object) resolveTexts(e *dwarf.Entry) {
	for i := range e.Field {
		f := &e.Field[i]
		if f.Attr == dwarf.AttrName || f.Attr == dwarf.AttrCompDir {
			if text, ok := o.text(e, f.Attr, true); ok {
				f.Val = text
			}
		}
	}
}

func (a *altFile) read() error {
	info, err := a.file.contents(".debug_info")
	if err == nil {
		var part map[string][]byte
		a.data, part, err = a.file.dwarfData(info, false)
		a.str = part[".debug_str"]
	}
	return err
}

// text returns the string of an attribute, which may be in the shared file.
func (o *Object) text(e *dwarf.Entry, a dwarf.Attr, own bool) (string, bool) {
	f := e.AttrField(a)
	if f == nil {
		return "", false
	}
	at := uint64(0)
	switch v := f.Val.(type) {
	case string:
		return v, true
	case int64:
		at = uint64(v)
	case uint32: // DW_FORM_strp_sup
		at = uint64(v)
	case uint64:
		at = v
	default:
		return "", false
	}
	if alt := o.alt(); own && alt != nil {
		return cString(alt.str, at), true
	}
	return "", false
}

// reference returns the entry that an attribute refers to. It may be in the shared file.
func (o *Object) reference(e *dwarf.Entry, a dwarf.Attr) (at dwarf.Offset, shared, ok bool) {
	f := e.AttrField(a)
	if f == nil {
		return 0, false, false
	}
	switch v := f.Val.(type) {
	case dwarf.Offset:
		return v, false, true
	case int64:
		return dwarf.Offset(v), true, f.Class == dwarf.ClassReferenceAlt
	case uint32: // DW_FORM_ref_sup4
		return dwarf.Offset(v), true, f.Class == dwarf.ClassReference
	case uint64:
		return dwarf.Offset(v), true, f.Class == dwarf.ClassReference
	}
	return 0, false, false
}
