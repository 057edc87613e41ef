package object

// openMini opens the compressed symbol table of a stripped file (.gnu_debugdata,
// "MiniDebugInfo" of GDB), if nothing better was found.
func (o *Object) openMini() {
	if o.main.has(".symtab") || o.debug != nil || !o.main.has(".gnu_debugdata") {
		return
	}
	data, err := o.main.contents(".gnu_debugdata")
	if err == nil {
		data, err = inflateXZ(data, min(max(maxInflation*len(data), smallSection), mostInflated))
	}
	if err == nil {
		o.mini, err = newELF(o.Path, data)
	}
	if err != nil {
		o.note("%s: .gnu_debugdata: %v", o.Path, err)
		return
	}
	if !o.mini.has(".symtab") {
		o.mini = nil
	}
}

// addExported adds the functions of the dynamic symbol table, which the table of
// .gnu_debugdata leaves out.
func (o *Object) addExported(t *symbolTable) {
	if !o.main.has(".dynsym") {
		return
	}
	exported := &symbolTable{}
	o.readTable(exported, o.main, ".dynsym", o.isFunction)
	for _, e := range exported.entries {
		e.name, t.extra = uint32(len(t.extra)), append(t.extra, exported.name(e))
		e.flags |= named
		t.entries = append(t.entries, e)
	}
}
