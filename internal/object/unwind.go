package object

import (
	"strings"

	"github.com/cyclestack/cyclestack/internal/unwind"
)

// Unwind returns how the caller is found at an address; nil if the file does not say it.
func (o *Object) Unwind(addr uint64) (row *unwind.Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := distrust("the call frame information", func() error {
		if o.callers == nil {
			o.callers = o.frameTable()
		}
		if row = o.callers.Row(addr); row != nil {
			return nil
		}
		if lacks := o.callers.Lacks(); lacks != "" {
			o.note("%s: %s", o.Path, lacks)
		}
		switch k := unwind.MachineOf(o.Arch); {
		case o.stub(addr):
			row = unwind.Stub(o.Arch, addr)
		case k != nil && addr-o.main.Entry < entryCode:
			row = unwind.Outermost(k)
		}
		return nil
	})
	if err != nil {
		o.note("%s: %v", o.Path, err)
		return nil
	}
	return row
}

// entryCode is how many bytes the code at a program's entry has at most: glibc's has 38, musl's 22.
const entryCode = 40

// stub reports whether an address is in the procedure linkage table, which only GNU's linkers describe.
func (o *Object) stub(addr uint64) bool {
	for _, s := range o.main.Sections {
		if addr-s.Addr < s.Size && strings.HasPrefix(s.Name, ".plt") {
			return true
		}
	}
	return false
}

// frameTable opens the call frame information of an object. Of an instruction set that is
// not supported it is empty.
func (o *Object) frameTable() *unwind.Table {
	section := func(name string) unwind.Section {
		if s := o.main.Section(name); s != nil {
			if data, err := o.main.contents(name); err == nil {
				return unwind.Section{Data: data, Addr: s.Addr}
			}
		}
		return unwind.Section{}
	}
	t, err := unwind.New(unwind.Sections{Arch: o.Arch, Order: o.main.ByteOrder,
		EHFrame: section(".eh_frame"), Header: section(".eh_frame_hdr"), SFrame: section(".sframe"), Debug: o.debugFrame})
	if err != nil {
		o.note("%s: %v", o.Path, err)
		t, _ = unwind.New(unwind.Sections{Arch: "amd64", Order: o.main.ByteOrder})
	}
	return t
}

// debugFrame returns .debug_frame, of the file or of its debug file.
func (o *Object) debugFrame() []byte {
	for _, f := range []*elfFile{o.main, o.debug} {
		if f == nil {
			continue
		}
		data, err := f.contents(".debug_frame")
		if err != nil {
			o.note("%v", err)
		}
		if len(data) > 0 {
			return data
		}
	}
	return nil
}
