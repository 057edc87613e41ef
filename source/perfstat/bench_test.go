package perfstat_test

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/cyclestack/cyclestack/source/perfstat"
)

var benchEvents = []string{"cycles", "instructions", "branches", "branch-misses", "cache-references", "cache-misses",
	"L1-dcache-loads", "L1-dcache-load-misses", "dTLB-loads", "dTLB-load-misses", "uops_issued.any",
	"uops_retired.retire_slots", "idq_uops_not_delivered.core", "int_misc.recovery_cycles",
	"cpu/event=0xa3,umask=0x6,cmask=0x6/", "cycle_activity.stalls_l3_miss", "cycle_activity.stalls_mem_any",
	"exe_activity.bound_on_stores", "task-clock", "page-faults"}

// intervals writes what perf stat -I 1000 -x, -A would: n intervals of two
// logical processors, event by event as perf prints them, or CPU by CPU.
func intervals(n int, byEvent bool) []byte {
	const cpus = 2
	var b bytes.Buffer
	line := func(i, cpu, e int) {
		value := strconv.Itoa(1000003*(i%977+1) + 7919*e + cpu)
		unit := ""
		if benchEvents[e] == "task-clock" {
			value, unit = fmt.Sprintf("%d.%02d", 1000+i%13, i%100), "msec"
		}
		share := 100 - 80*(e%5)/4
		fmt.Fprintf(&b, "%6d.%09d,CPU%d,%s,%s,%s,%d,%d.00,%d.%03d,M/sec\n",
			i+1, 100000+i, cpu, value, unit, benchEvents[e], int64(share)*10_000_000+int64(i), share, i%10, e)
	}
	for i := range n {
		if byEvent {
			for e := range benchEvents {
				for cpu := range cpus {
					line(i, cpu, e)
				}
			}
			continue
		}
		for cpu := range cpus {
			for e := range benchEvents {
				line(i, cpu, e)
			}
		}
	}
	return b.Bytes()
}

func read(tb testing.TB, input []byte) (tables, rows int) {
	r := perfstat.NewReader(bytes.NewReader(input), "intervals.csv", perfstat.Options{})
	for r.Next() {
		tables++
		rows += len(r.Table().Scopes) * len(r.Table().Columns)
	}
	if err := r.Err(); err != nil {
		tb.Fatal(err)
	}
	return tables, rows
}

// BenchmarkForms reads the text and JSON of 1,000 intervals of 2 processors and
// 20 events.
func BenchmarkForms(b *testing.B) {
	var text, json bytes.Buffer
	for line := range bytes.Lines(intervals(1000, true)) {
		f := bytes.SplitN(bytes.TrimSpace(line), []byte(","), 5)
		rest := f[4]
		if bytes.HasPrefix(rest, []byte("cpu/")) {
			rest = []byte("r6a3,5,50.00") // without the separator
		}
		g := bytes.Split(rest, []byte(","))
		fmt.Fprintf(&text, "%16s %s %18s %4s %-32s (%s%%)\n", f[0], f[1], f[2], f[3], g[0], g[2])
		fmt.Fprintf(&json, "{\"interval\" : %s, \"cpu\" : \"%s\", \"counter-value\" : \"%s\", \"unit\" : \"%s\", \"event\" : \"%s\", \"event-runtime\" : %s, \"pcnt-running\" : %s}\n",
			f[0], f[1][3:], f[2], f[3], g[0], g[1], g[2])
	}
	for name, input := range map[string][]byte{"text": text.Bytes(), "json": json.Bytes()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(input)))
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				_, k := read(b, input)
				rows += k
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkIntervals reads 10,000 intervals of 2 processors and 20 events.
func BenchmarkIntervals(b *testing.B) {
	const n = 10_000
	for _, order := range []struct {
		name    string
		byEvent bool
	}{{"event-major", true}, {"cpu-major", false}} {
		b.Run(order.name, func(b *testing.B) {
			input := intervals(n, order.byEvent)
			b.SetBytes(int64(len(input)))
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				_, k := read(b, input)
				rows += k
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
