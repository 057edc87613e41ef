package object

import (
	"debug/dwarf"
	"errors"
	"io"
	"math"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A lineTable is the line table of a unit.
type lineTable struct {
	rows  []lineRow // by address
	files []string  // those that rows name
}

// A lineRow says the line of the code from an address up to the next row's.
type lineRow struct {
	addr uint64
	file int32 // into files, or -1 where the code ends
	line int32
}

const lineRowSize = 16

func (t *lineTable) size() int {
	if t == nil {
		return 0
	}
	return len(t.rows) * lineRowSize
}

// lookup returns the line of an address.
func (t *lineTable) lookup(addr uint64) (file string, line int, until uint64) {
	i := sort.Search(len(t.rows), func(i int) bool { return t.rows[i].addr > addr })
	if until = math.MaxUint64; i < len(t.rows) {
		until = t.rows[i].addr
	}
	if i--; i < 0 || t.rows[i].file < 0 {
		return "", 0, until
	}
	return t.files[t.rows[i].file], int(t.rows[i].line), until
}

// maxRows bounds the line table of one unit. A line program is a loop that can make rows
// without end from few bytes.
const maxRows = 1 << 24

var errRows = errors.New("the line table of a unit has too many rows")

// linesOf returns the line table of a unit.
func (o *Object) linesOf(d *dwarfInfo, u *unit) *lineTable {
	if u.lines == nil {
		u.lines = &lineTable{}
		err := distrust("a line table", func() error { return o.readLines(d, u) })
		if err != nil {
			o.note("%s: the unit at %#x: %v", o.debugSource().path, u.position, err)
		}
		d.use(u, u.lines.size())
	} else {
		d.use(u, 0)
	}
	return u.lines
}

// readLines reads the line program of a unit, sequence by sequence.
func (o *Object) readLines(d *dwarfInfo, u *unit) error {
	r, err := d.data.LineReader(u.entry)
	if err != nil || r == nil {
		return err
	}
	t := &lineTable{rows: d.rows[:0]}
	defer func() {
		d.rows = t.rows[:0]
		t.sort()
		u.lines.rows, u.lines.files = slices.Clone(t.rows), t.files
	}()
	files := map[*dwarf.LineFile]int32{nil: -1}
	var e dwarf.LineEntry
	last, number := (*dwarf.LineFile)(nil), int32(-1)
	start := 0 // of the sequence
	for {
		err := r.Next(&e)
		if err == nil && len(t.rows) >= maxRows {
			err = errRows
		}
		if err != nil {
			t.rows = t.rows[:start] // a sequence without an end
			if err == io.EOF {
				err = nil
			}
			return err
		}
		if e.File != last {
			last, number = e.File, t.file(u, files, e.File)
		}
		row := lineRow{addr: e.Address, file: number, line: int32(min(max(e.Line, 0), 1<<31-1))}
		if e.EndSequence {
			row.file, row.line = -1, 0
		}
		if n := len(t.rows); n > start && t.rows[n-1].addr == row.addr {
			t.rows[n-1] = row // the last of several rows counts
		} else {
			t.rows = append(t.rows, row)
		}
		if e.EndSequence {
			if !o.isCode(t.rows[start].addr) {
				t.rows = t.rows[:start] // left out by the linker
			}
			start = len(t.rows)
		}
	}
}

// file returns the index of a file's name.
func (t *lineTable) file(u *unit, known map[*dwarf.LineFile]int32, f *dwarf.LineFile) int32 {
	i, ok := known[f]
	if !ok {
		i = int32(len(t.files))
		known[f] = i
		t.files = append(t.files, u.source(f.Name))
	}
	return i
}

// source returns the path of a file of the unit's line table. The directories of DWARF 5
// may be relative to the unit's compilation directory; package dwarf joins them in earlier
// versions only. It also joins an absolute name with a directory, and clang writes the
// unit's own name so.
func (u *unit) source(name string) string {
	dir, _ := u.entry.Val(dwarf.AttrCompDir).(string)
	own, _ := u.entry.Val(dwarf.AttrName).(string)
	switch {
	case path.IsAbs(own) && name == path.Join(dir, own):
		return own
	case name == "" || path.IsAbs(name) || !path.IsAbs(dir):
		return name
	}
	return path.Join(dir, name)
}

// sort sorts the rows by address. The rows of a sequence are sorted already, and sequences
// may be in any order. At the end of one sequence and the start of another the start
// counts.
func (t *lineTable) sort() {
	t.rows = sorting.Merged(t.rows, func(a, b *lineRow) bool {
		return a.addr < b.addr || a.addr == b.addr && a.file < 0 && b.file >= 0
	})
	kept := t.rows[:0]
	for _, r := range t.rows {
		if n := len(kept); n > 0 && kept[n-1].addr == r.addr {
			kept[n-1] = r
			continue
		}
		kept = append(kept, r)
	}
	t.rows = kept
}

// Line returns the source line of an address: of the innermost function, if calls were
// inlined there. The file is "" if it is not known, and the line 0 if the code belongs to
// none.
func (o *Object) Line(addr uint64) (file string, line int) {
	return lineIn(o.known(linesKept, addr, func() string {
		file, line, _ := o.line(addr)
		return lineText(file, line)
	}))
}

// LineTo is Line, and returns up to where the line is the same at least. It keeps stretches.
func (o *Object) LineTo(addr uint64) (file string, line int, until uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := o.index(linesKept)
	if x != nil {
		if i := lastAt(x.kept.addrs, addr); i >= 0 {
			if p, known := x.kept.piece(i); known {
				file, line = lineIn(p.name)
				return file, line, p.high
			}
		}
	}
	until = addr + 1
	_ = protect(func() error { // what cannot be read has no line
		if file, line, until = o.line(addr); x != nil && len(x.fresh)+x.kept.pieces/2 < mostFrames {
			x.put(indexPiece{span{addr, until}, lineText(file, line)})
		}
		return nil
	})
	return file, line, until
}

// lineText is how a line is kept, and lineIn reads it.
func lineText(file string, line int) string {
	if file == "" && line == 0 {
		return ""
	}
	return file + "\x00" + strconv.Itoa(line)
}

func lineIn(text string) (file string, line int) {
	if text == "" {
		return "", 0
	}
	file, number, _ := strings.Cut(text, "\x00")
	line, _ = strconv.Atoi(number)
	return file, line
}

func (o *Object) line(addr uint64) (file string, line int, until uint64) {
	if o.options.NoLines {
		return "", 0, math.MaxUint64
	}
	d := o.lineInfo()
	u, until := d.unitTo(addr)
	if u == nil {
		if o.goTableOf().table != nil {
			until = addr + 1
		}
		file, line = o.goLine(addr)
		return file, line, until
	}
	t := o.linesOf(d, u)
	if d == o.slim && (len(t.rows) == 0 || d.unitAt(t.rows[0].addr) != u) { // another unit's line program
		d.units = nil
		return o.line(addr)
	}
	file, line, to := t.lookup(addr)
	return file, line, min(until, to)
}
