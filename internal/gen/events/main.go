// Command events writes the event tables of the catalogue, model/data/events,
// from the processor vendors' own files.
//
// It is run by go generate, with the folder that holds those files in the
// environment:
//
//	CYCLESTACK_VENDOR_DATA=DIR go generate ./internal/gen/events
//
// The folder is laid out like this; what else is in it does not matter:
//
//	intel-perfmon/        Intel's perfmon repository, its commit in the file COMMIT
//	arm-telemetry/        the data folder of Arm's telemetry-solution repository
//	reference-only/linux-pmu-events/7.3/   Linux's event lists: names and codes of AMD and POWER
//	reference-only/libpfm-dump/            libpfm4's encodings of the same, one file per PMU
//
// The processors and their files are in processors.csv. There is one reader for Intel's
// files, one for Arm's, and one for the lists of AMD and POWER. Each is strict: an unknown
// field, value or processor is an error. A vendor's file that changes its meaning must not
// change a table in silence. What the vendors have wrong is put right by fixes.csv, one line
// and one reason for each; names that a vendor gives to one encoding on purpose are listed
// in synonyms.csv. The kernel's names are in names.csv, the units of counts in units.csv,
// the tables' headings in the .txt files. Descriptions are not taken over.
//
// The tables' format is described in docs/format/event-tables.md. The table of
// RISC-V and those of Core 2 and POWER7 are written by hand.
package main

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/gen"
)

//go:generate go run . -vendor $CYCLESTACK_VENDOR_DATA -o ../../../model/data/events

//go:embed *.csv *.txt
var data embed.FS

func main() { gen.Main("events", "", generate) }

// A vendor has the events of one table.
type vendor struct {
	name string // of the table

	// read adds the vendor's processors to a table that has its sources.
	read func(dir string, t *table) error

	// check looks at a processor's corrected events, and prepares them for merging.
	check func(p *processor) error

	// finish says what the vendor's files do not: an event's unit and counters.
	finish func(e *event, units []unitRule)
}

var vendors = []vendor{
	{"intel", readIntel, checkIntel, finishIntel},
	{"amd", readAMD, nil, finishAMD},
	{"arm", readArm, nil, finishArm},
	{"power", readPower, nil, finishPower},
}

// generate makes the tables from the vendors' files under dir.
func generate(dir string) ([]gen.File, error) {
	c, err := readCorrections()
	if err != nil {
		return nil, err
	}
	var files []gen.File
	for _, v := range vendors {
		t, err := v.table(dir, c)
		if err != nil {
			return nil, err
		}
		var buf bytes.Buffer
		if err := t.write(&buf); err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		files = append(files, gen.File{Name: v.name + ".csv", Data: buf.Bytes()})
	}
	return files, c.unused()
}

// table makes a vendor's table.
func (v *vendor) table(dir string, c *corrections) (*table, error) {
	sources, err := readSources(v.name)
	if err != nil {
		return nil, err
	}
	names, err := readNames(v.name)
	if err != nil {
		return nil, err
	}
	units, err := readUnits(v.name)
	if err != nil {
		return nil, err
	}
	heading, err := data.ReadFile(v.name + ".txt")
	if err != nil {
		return nil, err
	}
	t := &table{heading: strings.ReplaceAll(string(heading), "LINUX", linuxVersion), sources: sources}
	if err := v.read(dir, t); err != nil {
		return nil, err
	}
	for _, p := range t.processors {
		if err := c.apply(p); err != nil {
			return nil, err
		}
		if v.check != nil {
			if err := v.check(p); err != nil {
				return nil, fmt.Errorf("%s: %w", p.key, err)
			}
		}
		if err := c.merge(p); err != nil {
			return nil, err
		}
		for _, n := range names {
			if err := n.apply(p); err != nil {
				return nil, fmt.Errorf("%s: %w", p.key, err)
			}
		}
		for _, e := range p.events {
			v.finish(e, units)
		}
	}
	return t, nil
}

// eachRow calls f for the rows of one of the generator's own tables that are for a
// vendor. The vendor is the first column.
func eachRow(name, header, vendor string, f func(row []string) error) error {
	table, err := data.ReadFile(name)
	if err != nil {
		return err
	}
	return gen.EachRow(name, table, "vendor,"+header, func(_ int, row []string) error {
		if row[0] != vendor {
			return nil
		}
		return f(row[1:])
	})
}

// A source is a line of processors.csv: the files that describe a processor.
type source struct {
	key        string
	files      []string
	libpfm     string
	firstFixed int // number of the first fixed counter
}

func readSources(vendor string) (all []source, err error) {
	return all, eachRow("processors.csv", "key,files,libpfm,first_fixed", vendor, func(r []string) error {
		first, err := strconv.Atoi("0" + r[3])
		all = append(all, source{r[0], strings.Fields(r[1]), r[2], first})
		return err
	})
}

// onlyKnown makes sure that processors.csv leaves no file of a pattern out, but for
// those to ignore.
func (t *table) onlyKnown(dir, pattern string, ignore func(file string) bool) error {
	files, err := fs.Glob(os.DirFS(dir), pattern)
	for _, f := range files {
		if !slices.ContainsFunc(t.sources, func(s source) bool { return slices.Contains(s.files, f) }) && !ignore(f) {
			return fmt.Errorf("%s: a new processor; add it to processors.csv", f)
		}
	}
	return err
}
