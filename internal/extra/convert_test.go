package extra

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/cyclestack/cyclestack/internal/cli"
)

// conversions are recordings, and how they are divided.
var conversions = []struct {
	name, by string
	args     []string
}{
	{"power7-cpi.txt", "run", nil},
	{"core2.txt", "run", nil},
	{"smt-skylakex.csv", "cpu", nil},
	{"functions.data", "function", []string{"--sysroot", "../../examples/functions"}},
	{"levels.data", "thread,function", []string{"--sysroot", "../../examples/functions"}},
}

// convertTo converts a recording into a directory.
func convertTo(t *testing.T, args ...string) (status int, msg string) {
	t.Helper()
	var stderr bytes.Buffer
	status = Main(context.Background(), append([]string{"convert"}, args...), strings.NewReader(""), io.Discard, &stderr)
	return status, stderr.String()
}

// rowsOf reads a table.
func rowsOf(t *testing.T, file string) (rows []map[string]any) {
	t.Helper()
	list, err := parquet.ReadFile[any](file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		rows = append(rows, r.(map[string]any))
	}
	return rows
}

// same reports whether a cell is what JSON has: null where that has nothing.
func same(cell, want any) bool {
	switch c := cell.(type) {
	case nil:
		return want == nil || want == "" || want == 0.0
	case int64:
		return float64(c) == want || c == 0 && want == nil
	case float64:
		w, ok := want.(float64)
		return ok && math.Abs(c-w) <= 1e-6*max(1, math.Abs(w)) // coverage has so many digits in JSON
	}
	return cell == want
}

// compare holds the cells of a row to the fields of an object.
func compare(t *testing.T, where string, row map[string]any, object any, columns map[string]string) {
	t.Helper()
	fields := object.(map[string]any)
	for column, field := range columns {
		cell, ok := row[column]
		if !ok {
			t.Fatalf("%s: there is no column %s", where, column)
		}
		if !same(cell, fields[field]) {
			t.Errorf("%s: %s is %v, and %s of the JSON %v", where, column, cell, field, fields[field])
		}
	}
}

// columns of the tables, and the fields of JSON that they are.
var (
	scopeColumns = map[string]string{"scope": "kind", "label": "label", "start_s": "start_s", "duration_s": "duration_s", "cpu": "cpu",
		"module": "module", "build_id": "build_id", "function": "function", "file": "file", "line": "line", "addr": "addr", "process": "process", "thread": "thread"}
	countColumns = map[string]string{"event": "event", "value": "value", "unit": "unit", "coverage": "coverage", "samples": "samples", "reason": "state"}
	nodeColumns  = map[string]string{"path": "path", "name": "name", "level": "level", "section": "section", "value": "value", "unit": "unit", "error": "error",
		"error_reason": "error_reason", "error_bound": "error_bound", "coverage": "coverage", "together": "together", "reliable": "reliable", "flagged": "flagged"}
	placeColumns = map[string]string{"share": "share", "error": "share_error", "samples": "share_samples"}
)

// TestConvert: the tables have what the JSON of the same recordings has, cell by cell.
func TestConvert(t *testing.T) {
	t.Parallel()
	for _, c := range conversions {
		file, dir := "../../examples/"+c.name, filepath.Join(t.TempDir(), "tables")
		if status, msg := convertTo(t, append(c.args, "--by", c.by, "-o", dir, file)...); status != 0 {
			t.Fatalf("%s: %s", c.name, msg)
		}
		var out, stderr bytes.Buffer
		if status := cli.Main(t.Context(), append(c.args, "report", "--by", c.by, "-v", "--format", "json", file), strings.NewReader(""), &out, &stderr); status != 0 {
			t.Fatalf("%s: %s", c.name, stderr.String())
		}
		var doc struct{ Accounts []map[string]any }
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		counts, nodes, places := rowsOf(t, filepath.Join(dir, "counts.parquet")), rowsOf(t, filepath.Join(dir, "accounts.parquet")), rowsOf(t, filepath.Join(dir, "places.parquet"))
		next := func(rows *[]map[string]any) map[string]any {
			if len(*rows) == 0 {
				t.Fatalf("%s: rows are missing", c.name)
			}
			row := (*rows)[0]
			*rows = (*rows)[1:]
			return row
		}
		for n, a := range doc.Accounts {
			reasons := map[any]any{}
			for _, m := range a["missing"].([]any) {
				reasons[m.(map[string]any)["node"]] = m.(map[string]any)["why"]
			}
			for _, of := range a["counts"].([]any) {
				row := next(&counts)
				compare(t, c.name, row, of, countColumns)
				compare(t, c.name, row, a["scope"], scopeColumns)
				if row["account"] != int64(n) {
					t.Errorf("%s: account %v is number %d", c.name, row["account"], n)
				}
			}
			for _, of := range a["nodes"].([]any) {
				row := next(&nodes)
				compare(t, c.name, row, of, nodeColumns)
				compare(t, c.name, row, a["scope"], scopeColumns)
				if why, missing := reasons[of.(map[string]any)["path"]]; missing && !same(row["reason"], why) {
					t.Errorf("%s: %v is not known because %s, and not %s", c.name, of, why, row["reason"])
				}
			}
			for len(nodes) > 0 && nodes[0]["account"] == int64(n) && nodes[0]["main"] == false {
				nodes = nodes[1:] // of further methods
			}
			if s := a["scope"].(map[string]any); s["share_of"] != nil {
				row := next(&places)
				compare(t, c.name, row, s, placeColumns)
				compare(t, c.name, row, s, scopeColumns)
			}
		}
		if len(counts)+len(nodes)+len(places) > 0 {
			t.Errorf("%s: %d, %d and %d rows are left over", c.name, len(counts), len(nodes), len(places))
		}
	}
}

// TestConvertRefused: what cannot be converted leaves nothing behind, and one line.
func TestConvertRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.data")
	if err := os.WriteFile(broken, append([]byte("PERFILE2"), make([]byte, 40)...), 0o666); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "tables")
	for _, c := range []struct {
		status int
		args   []string
	}{
		{3, []string{"-o", to, broken}},
		{3, []string{"-o", to, "../../examples/power7-cpi.txt", broken}},
		{2, []string{"-o", to, "--table", "nodes", broken}},
		{2, []string{"-o", to, "--by", "moon", "../../examples/power7-cpi.txt"}},
		{2, []string{"-o", broken, "../../examples/power7-cpi.txt"}},
		{2, []string{"--table", "counts", "-o", broken, broken}},
		{2, []string{"../../examples/power7-cpi.txt"}},
	} {
		status, msg := convertTo(t, c.args...)
		if status != c.status || strings.Count(msg, "\n") != 1 {
			t.Errorf("%v: status %d: %s", c.args, status, msg)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v is left: %v", list, err)
	}
}

// script asks both engines for the sum of each event.
const script = `
const { createRequire } = require("module");
const at = createRequire(process.argv[2] + "/");
const dir = process.argv[3];
(async () => {
  const { DuckDBInstance } = at("@duckdb/node-api");
  const db = await (await DuckDBInstance.create(":memory:")).connect();
  const text = require("fs").readFileSync(process.argv[4], "utf8");
  const queries = text.match(/` + "```sql\\n([^]*?)```" + `/)[1].replaceAll("'tables/", "'" + dir + "/").split(";").filter(q => q.trim());
  const answers = [];
  for (const q of queries) {
    const rows = (await db.runAndReadAll(q)).getRowObjects();
    answers.push(rows.map(r => Object.fromEntries(Object.entries(r).map(([k, v]) => [k, typeof v === "bigint" ? Number(v) : v]))));
  }
  const pl = at("nodejs-polars");
  const counts = pl.readParquet(dir + "/counts.parquet");
  const sums = counts.filter(pl.col("reliable").and(pl.col("scope").eq(pl.lit("run")))).groupBy("event").agg(pl.col("value").sum()).sort("event").toRecords();
  const first = pl.readParquet(dir + "/accounts.parquet").filter(pl.col("main").and(pl.col("level").eq(pl.lit(1)))).toRecords();
  const places = pl.readParquet(dir + "/places.parquet").filter(pl.col("function").isNotNull()).join(counts, { on: ["recording", "account"] }).toRecords();
  console.log(JSON.stringify({ answers, sums, first: first.map(r => ({ path: r.path, value: r.value })), places: places.length }));
})();
`

// TestConvertEngines: DuckDB answers the queries of docs/parquet.md, Polars the same, and
// both as the tables are read here.
func TestConvertEngines(t *testing.T) {
	t.Parallel()
	modules := os.Getenv("CYCLESTACK_NODE_MODULES")
	for _, name := range []string{"@duckdb/node-api", "nodejs-polars"} {
		if _, err := os.Stat(filepath.Join(modules, name)); modules == "" || err != nil {
			t.Skipf("CYCLESTACK_NODE_MODULES names no directory with %s: npm install @duckdb/node-api nodejs-polars", name)
		}
	}
	dir := filepath.Join(t.TempDir(), "tables")
	if status, msg := convertTo(t, "-o", dir, "--sysroot", "../../examples/functions", "../../examples/power7-cpi.txt", "../../examples/core2.txt", "../../examples/levels.data"); status != 0 {
		t.Fatal(msg)
	}
	file := filepath.Join(t.TempDir(), "engines.cjs")
	if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", file, modules, dir, "../../docs/parquet.md")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var got struct {
		Answers     [][]map[string]any
		Sums, First []map[string]any
		Places      int
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got.Answers) != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string]float64{}
	for _, r := range rowsOf(t, filepath.Join(dir, "counts.parquet")) {
		if r["reliable"] == true && r["scope"] == "run" {
			want[r["event"].(string)] += r["value"].(float64)
		}
	}
	for engine, sums := range map[string][]map[string]any{"DuckDB": got.Answers[2], "Polars": got.Sums} {
		if len(sums) != len(want) || len(sums) == 0 {
			t.Errorf("%s has %d events of %d", engine, len(sums), len(want))
		}
		for _, s := range sums {
			if !same(s["value"], want[s["event"].(string)]) {
				t.Errorf("%s: %v, want %g", engine, s, want[s["event"].(string)])
			}
		}
	}
	if len(got.Answers[0]) != len(got.First) || len(got.First) == 0 {
		t.Fatalf("%d and %d nodes of the first level", len(got.Answers[0]), len(got.First))
	}
	for i, n := range got.First {
		if got.Answers[0][i]["path"] != n["path"] || got.Answers[0][i]["value"] != n["value"] {
			t.Errorf("DuckDB has %v, and Polars %v", got.Answers[0][i], n)
		}
	}
	if n := len(got.Answers[1]); n == 0 || n != got.Places {
		t.Errorf("DuckDB has %d counts of functions, and Polars %d", n, got.Places)
	}
}
