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
// There is one reader per vendor (intel.go, amd.go, arm.go, power.go). Each is
// strict: a field, a value or a processor that it does not know is an error,
// because a vendor's file that changes its meaning must not change a table in
// silence. What the vendors have wrong is put right by fixes.csv, one line and
// one reason for each; names that a vendor gives to one encoding on purpose are
// listed in synonyms.csv. Descriptions are not taken over.
//
// The tables' format is described in docs/format/event-tables.md. The table of
// RISC-V and those of Core 2 and POWER7 are written by hand.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . -vendor $CYCLESTACK_VENDOR_DATA -o ../../../model/data/events

func main() {
	vendor := flag.String("vendor", "", "folder of the vendors' files")
	out := flag.String("o", "", "folder to write the tables to")
	flag.Parse()
	if *vendor == "" || *out == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: events -vendor DIR -o DIR (go generate takes the first from CYCLESTACK_VENDOR_DATA)")
		os.Exit(2)
	}
	if err := run(*vendor, *out); err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
}

// run writes all tables, or none if one cannot be made.
func run(vendor, out string) error {
	files, err := generate(vendor)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(out, f.name), f.data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// A file is a generated table.
type file struct {
	name string
	data []byte
}

// generate makes the tables from the vendors' files under dir.
func generate(dir string) ([]file, error) {
	c, err := readCorrections()
	if err != nil {
		return nil, err
	}
	var files []file
	for _, vendor := range []struct {
		file string
		read func(dir string, c *corrections) (*table, error)
	}{
		{"intel.csv", readIntel},
		{"amd.csv", readAMD},
		{"arm.csv", readArm},
		{"power.csv", readPower},
	} {
		t, err := vendor.read(dir, c)
		if err != nil {
			return nil, err
		}
		var buf bytes.Buffer
		if err := t.write(&buf); err != nil {
			return nil, fmt.Errorf("%s: %w", vendor.file, err)
		}
		files = append(files, file{vendor.file, buf.Bytes()})
	}
	if err := c.unused(); err != nil {
		return nil, err
	}
	return files, nil
}
