package object

import (
	"debug/elf"
	"debug/gosym"
	"sort"
)

// goTable is the Go runtime's own table of functions (.gopclntab), which stays in programs
// without symbols and debug information. It does not have inlined calls.
type goTable struct {
	table *gosym.Table // nil: none
	text  span         // the section of code
}

// sectionsGo are the names of the table: in usual programs, and in position-independent
// ones.
var sectionsGo = []string{".gopclntab", ".data.rel.ro.gopclntab"}

// goTableOf returns the runtime's table, which is read once.
func (o *Object) goTableOf() *goTable {
	if o.golang == nil {
		o.golang = &goTable{}
		if err := distrust("the Go runtime's table of functions", o.readGo); err != nil {
			o.note("%s: %v", o.Path, err)
			o.golang = &goTable{}
		}
	}
	return o.golang
}

// goSection returns the section of the table; nil if there is none.
func (o *Object) goSection() *elf.Section {
	for _, name := range sectionsGo {
		if s := o.main.Section(name); s != nil {
			return s
		}
	}
	return nil
}

func (o *Object) readGo() error {
	s := o.goSection()
	text := o.main.Section(".text")
	if s == nil || text == nil {
		return nil
	}
	data, err := o.main.raw(s)
	if err != nil {
		return err
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return err
	}
	o.golang.table, o.golang.text = table, span{text.Addr, text.Addr + text.Size}
	return nil
}

// goFunctions adds the functions that the runtime's table has, and says whether
// there are any.
func (o *Object) goFunctions(t *symbolTable) bool {
	g := o.goTableOf()
	if g.table == nil {
		return false
	}
	for _, f := range g.table.Funcs {
		if f.Sym != nil && f.Entry < f.End && o.isCode(f.Entry) {
			t.addNamed(f.Entry, f.End-f.Entry, f.Name)
		}
	}
	return len(g.table.Funcs) > 0
}

// goLine returns the line of an address by the runtime's table.
func (o *Object) goLine(addr uint64) (file string, line int) {
	g := o.goTableOf()
	if g.table == nil || addr < g.text.low || addr >= g.text.high {
		return "", 0
	}
	funcs := g.table.Funcs
	i := sort.Search(len(funcs), func(i int) bool { return funcs[i].Entry > addr }) - 1
	if i < 0 || addr >= funcs[i].End {
		return "", 0
	}
	err := distrust("a Go line table", func() error {
		file, line, _ = g.table.PCToLine(addr)
		return nil
	})
	if err != nil {
		o.note("%s: %v", o.Path, err)
	}
	if err != nil || line <= 0 {
		return "", 0
	}
	return file, line
}
