package extra

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/parquet"
	"github.com/cyclestack/cyclestack/internal/release"
)

// A conversion is what the flags of convert ask for.
type conversion struct {
	format, output, table, by string
}

// newConvert makes the command convert.
func newConvert(k *cli.Kit) *cobra.Command {
	f, c := k.Flags(), conversion{}
	cmd := &cobra.Command{
		Use:   "convert -o DIRECTORY FILE…",
		Short: "Write counts, accounts and places of recordings as Parquet",
		Long: `convert writes what recordings hold as tables of Apache Parquet, which DuckDB, Polars,
Spark, ClickHouse and others read: counts.parquet has a row for each event,
accounts.parquet one for each node, places.parquet one for each place of samples.
The columns recording and account join them. What is not known is null, with the reason
in its own column.

-o names a directory for all tables. With --table it names the file of that table. A name
that ends in .parquet is the file of the accounts. Samples are split by function unless
--by says otherwise. docs/parquet.md lists the columns.`,
		Example: `  cyclestack convert -o tables examples/power7-cpi.txt examples/core2.txt
  cyclestack convert -o accounts.parquet --by interval intervals.csv
  cyclestack convert --table places -o hot.parquet --sysroot examples/functions examples/functions.data`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			return c.run(f, files)
		},
	}
	f.AddModel(cmd)
	f.AddPrograms(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.format, "format", "parquet", "output format: `parquet`")
	flags.StringVarP(&c.output, "output", "o", "", "write to the `DIRECTORY`, or of one table to this file")
	flags.StringVar(&c.table, "table", "", "only one table: `"+strings.Join(parquet.Tables, "|")+"`")
	flags.StringVar(&c.by, "by", "", "one account for each `KIND`, several by commas, as of report (default: run, and function of samples)")
	return cmd
}

// run converts recordings.
func (c *conversion) run(f *cli.Flags, files []string) error {
	switch {
	case c.format != "parquet":
		return fault.Usagef("--format %s: must be parquet", c.format)
	case c.table != "" && !slices.Contains(parquet.Tables, c.table):
		return fault.Usagef("--table %s: must be one of %s", c.table, strings.Join(parquet.Tables, ", "))
	case c.output == "" || c.output == "-":
		return fault.Usagef("Parquet is not text: -o DIRECTORY, or -o FILE.parquet")
	}
	table := c.table
	if table == "" && filepath.Ext(c.output) == ".parquet" {
		table = "accounts"
	}
	if table != "" {
		return output.WriteFile(c.output, func(w io.Writer) error { return c.write(f, files, map[string]io.Writer{table: w}) }, files...)
	}
	if info, err := os.Stat(c.output); err == nil && !info.IsDir() {
		return fault.Usagef("-o %s: it is no directory, and has no room for all tables: --table names one", c.output)
	}
	var names []string
	for _, name := range parquet.Tables {
		names = append(names, name+".parquet")
	}
	return output.WriteDir(c.output, names, func(to map[string]io.Writer) error {
		tables := map[string]io.Writer{}
		for i, name := range parquet.Tables {
			tables[name] = to[names[i]]
		}
		return c.write(f, files, tables)
	}, files...)
}

// write writes recordings into tables.
func (c *conversion) write(f *cli.Flags, files []string, to map[string]io.Writer) error {
	w := parquet.New(to, release.Version)
	if note := f.Report().Note; note != nil {
		w.Note = note
	}
	for _, file := range files {
		w.Recording = file
		if err := f.Accounts(w, file, c.by); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return fault.As(fault.Machine, fmt.Errorf("%s: %w", c.output, err))
	}
	return nil
}
