// Package gen has what the generators of the catalogue's files share: their command
// line, and the reading and writing of files.
package gen

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// A File is a generated file.
type File struct {
	Name string
	Data []byte
}

// Main runs a generator: generate makes its files from a folder of the vendors'
// files. Main writes all files, or none if one cannot be made.
func Main(name, folder string, generate func(dir string) ([]File, error)) {
	vendor := flag.String("vendor", "", "folder of the vendors' files")
	out := flag.String("o", "", "folder to write to")
	flag.Parse()
	if *vendor == "" || *out == "" || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "usage: %s -vendor DIR -o DIR (go generate takes the first from CYCLESTACK_VENDOR_DATA)\n", name)
		os.Exit(2)
	}
	files, err := generate(filepath.Join(*vendor, folder))
	for _, f := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(*out, f.Name), f.Data, 0o666)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// ReadJSON reads a file of JSON. Keys that v lacks are ignored.
func ReadJSON(name string, v any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// ParseTOML reads a file of the generator's own. Keys that v lacks are errors.
func ParseTOML(name string, data []byte, v any) error {
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// EachRow calls f for each row of a CSV file with '#' comments and the given header.
// An error of f gets the row's line.
func EachRow(name string, data []byte, header string, f func(line int, row []string) error) error {
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment = '#'
	columns := strings.Split(header, ",")
	if first, err := r.Read(); err != nil || !slices.Equal(first, columns) {
		return fmt.Errorf("%s: the header is not %q", name, header)
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		line, _ := r.FieldPos(0)
		if err := f(line, row); err != nil {
			return fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}
