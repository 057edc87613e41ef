package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestProgramsMeasured makes the tables of docs/simulated.md for each set of programs.
// They compare the cycles simulated with this machine's penalties with measured cycles.
// They also compare the functions by simulated cycles with the functions by samples. It
// takes minutes, and runs only if asked to:
//
//	CYCLESTACK_PROGRAMS=tables.md go test ./internal/cli -v -run ProgramsMeasured -timeout 60m
//
// CYCLESTACK_PROGRAMS_ONLY is a regular expression that selects programs as SET/NAME:
// second/, or sparse$. CYCLESTACK_PROGRAMS_NATIVE names a file for the measurements.
// With it the simulation can be repeated alone. Without CYCLESTACK_PROGRAMS nothing is
// simulated. CYCLESTACK_PROGRAMS_PREFIX is put before each measured command: on a busy machine
// "chrt -f 1" gives it priority above all other programs.
func TestProgramsMeasured(t *testing.T) {
	t.Parallel()
	out := os.Getenv("CYCLESTACK_PROGRAMS")
	if out == "" && os.Getenv("CYCLESTACK_PROGRAMS_NATIVE") == "" {
		t.Skip("CYCLESTACK_PROGRAMS names no file for the tables")
	}
	needSimulator(t)
	sets := chosenSets(t)
	dir := t.TempDir()
	native := nativeRuns(t, dir, sets)
	if out == "" {
		return
	}
	penalties := storedPenalties(t)
	done := make([][]programRow, len(sets))
	for i, set := range sets {
		for _, p := range set.programs {
			row := programRow{p, native[p.name], p.simulateAll(t, dir, penalties)}
			done[i] = append(done[i], row)
			t.Log(row.details())
			if err := os.WriteFile(out, tables(sets, done), 0o666); err != nil { // all so far: it takes long
				t.Fatal(err)
			}
		}
		if within, _, same := judge(done[i]); 10*within < 7*len(done[i]) || 10*same < 8*len(done[i]) {
			t.Errorf("%s: %d of %d within 30 %%, want 7 of 10; %d rankings the same, want 8 of 10", set.name, within, len(done[i]), same)
		}
	}
}

// chosenSets are the sets with the programs that are asked for.
func chosenSets(t *testing.T) (sets []programSet) {
	t.Helper()
	only, err := regexp.Compile(os.Getenv("CYCLESTACK_PROGRAMS_ONLY"))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range programSets {
		chosen := slices.DeleteFunc(slices.Clone(set.programs), func(p testProgram) bool {
			return !only.MatchString(set.name + "/" + p.name)
		})
		if len(chosen) > 0 {
			sets = append(sets, programSet{set.name, chosen})
		}
	}
	return sets
}

// simulateAll returns the simulation of all rounds of a program, and of its setup. It
// simulates one round in eight, since that takes long and all rounds are alike.
func (p *testProgram) simulateAll(t *testing.T, dir, penalties string) simulatedProgram {
	t.Helper()
	program, rounds := p.compile(t, dir), max(1, p.rounds/8)
	if p.command != "" {
		return p.simulate(t, dir, program, 0, penalties)
	}
	setup := p.simulate(t, dir, program, 0, penalties)
	some := p.simulate(t, dir, program, rounds, penalties)
	times := float64(p.rounds) / float64(rounds)
	return simulatedProgram{
		cycles:    setup.cycles + times*(some.cycles-setup.cycles),
		parts:     extrapolated(setup.parts, some.parts, times),
		functions: extrapolated(setup.functions, some.functions, times),
		shown:     extrapolated(setup.shown, some.shown, times),
	}
}

// extrapolated returns what is in setup, and so many times what some has more.
func extrapolated(setup, some []share, times float64) []share {
	sums, errors := map[string]float64{}, map[string]float64{}
	for _, s := range setup {
		sums[s.function] -= (times - 1) * s.value
	}
	for _, s := range some {
		sums[s.function] += times * s.value
		errors[s.function] = times * s.error
	}
	for name, v := range sums {
		sums[name] = max(0, v) // paces of two runs may differ in what is hardly executed
	}
	return withErrors(ranked(sums), errors)
}

// A programRow is what is known of a program.
type programRow struct {
	program   testProgram
	native    nativeRun
	simulated simulatedProgram
}

// cycles returns the cycles of all rounds in user mode, native and simulated.
func (r *programRow) cycles() (native, simulated float64) {
	return r.native.User * r.native.Clock, r.simulated.cycles
}

// near tells whether the cycles are within 30 %, and wrong what contradicts the ranking.
func (r *programRow) near() bool {
	native, simulated := r.cycles()
	return simulated >= 0.7*native && simulated <= 1.3*native
}

func (r *programRow) wrong() string {
	return contradiction(r.simulated.functions, ranked(r.native.Samples))
}

// differs is as wrong, where a sampler would see the cycles of the simulation.
func (r *programRow) differs() string {
	if len(r.simulated.shown) == 0 {
		return r.wrong()
	}
	return contradiction(r.simulated.shown, ranked(r.native.Samples))
}

func judge(rows []programRow) (within, same, seen int) {
	for _, r := range rows {
		if r.near() {
			within++
		}
		if r.wrong() == "" {
			same++
		}
		if r.differs() == "" {
			seen++
		}
	}
	return within, same, seen
}

// tables are those of the sets, with the details of their programs behind.
func tables(sets []programSet, done [][]programRow) []byte {
	var tables, details bytes.Buffer
	for i, set := range sets {
		if len(done[i]) > 0 {
			writeTable(&tables, set.name, done[i])
		}
		for _, row := range done[i] {
			fmt.Fprintf(&details, "%s\n", row.details())
		}
	}
	fmt.Fprintf(&tables, "```text\n%s```\n", &details)
	return tables.Bytes()
}

// writeTable writes a set's table.
func writeTable(w *bytes.Buffer, set string, rows []programRow) {
	fmt.Fprintf(w, "### %s\n\n", set)
	fmt.Fprint(w, "| program | what it does | native, 10⁶ cycles | simulated | ratio | within 30 % | top three by sampling, % | by simulated cycles, % | same ranking | where a sampler sees them, % | same ranking |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		native, simulated := r.cycles()
		near, star := "**no**", ""
		if r.near() {
			near = "yes"
		}
		alike := func(why string) string {
			if why != "" {
				return "**no**: " + why
			}
			return "yes"
		}
		if r.program.better {
			star = "*"
		}
		fmt.Fprintf(w, "| `%s`%s | %s | %.0f | %.0f | %.2f | %s | %s | %s | %s | %s | %s |\n",
			r.program.name, star, r.program.does, native/1e6, simulated/1e6, simulated/native, near, shares(ranked(r.native.Samples)), shares(r.simulated.functions), alike(r.wrong()), shares(r.simulated.shown), alike(r.differs()))
	}
	within, same, seen := judge(rows)
	fmt.Fprintf(w, "\n**%d of %d within 30 %%. The ranking is the same in %d, and in %d where a sampler sees the cycles.**\n\n", within, len(rows), same, seen)
}

// details says where a program's simulated cycles go. For each function it has the shares
// of samples and of simulated cycles, and their ratio.
func (r *programRow) details() string {
	var w bytes.Buffer
	native, simulated := r.cycles()
	fmt.Fprintf(&w, "%s: %.2f times the cycles;", r.program.name, simulated/native)
	for _, part := range r.simulated.parts {
		if part.value >= 0.005*simulated {
			fmt.Fprintf(&w, " %s %.2f", part.function, part.value/native)
		}
	}
	sampled, counted := ranked(r.native.Samples), map[string]float64{}
	fmt.Fprintf(&w, "\n  %9s %9s %9s\n", "sampled", "simulated", "ratio")
	for _, f := range r.simulated.functions {
		counted[f.function] = f.value / total(r.simulated.functions)
	}
	missed := maps.Clone(counted) // simulated and hardly sampled
	line := func(name string, sampled float64) {
		fmt.Fprintf(&w, "  %7.1f %% %7.1f %% %9.2f  %s\n", 100*sampled, 100*counted[name], counted[name]*simulated/(sampled*native), name)
	}
	for _, f := range sampled {
		if share := f.value / total(sampled); share >= rankable {
			line(f.function, share)
			delete(missed, f.function)
		}
	}
	for _, f := range ranked(missed) {
		if f.value >= rankable {
			line(f.function, r.native.Samples[f.function]/total(sampled))
		}
	}
	return w.String()
}

func total(list []share) (sum float64) {
	for _, s := range list {
		sum += s.value
	}
	return sum
}

// A nativeRun is what a program takes by itself on this machine.
type nativeRun struct {
	Rounds  int                `json:"rounds"`
	User    float64            `json:"user_s"`   // processor time in user mode, of the fastest run
	Clock   float64            `json:"clock_hz"` // cycles in a second of it
	Width   float64            `json:"adds"`     // additions in a cycle, next to it; 4 if nobody else uses the core
	Samples map[string]float64 `json:"samples"`  // by function
}

const (
	timedRuns   = 16 // the fastest counts
	sampledRuns = 4
	perfTries   = 5
	clockRounds = 12 // millions of multiplications, of clock.c
)

// nativeRuns measures the programs. $CYCLESTACK_PROGRAMS_NATIVE names a file of earlier
// runs: it skips the programs in that file, and adds the others to it.
func nativeRuns(t *testing.T, dir string, sets []programSet) map[string]nativeRun {
	t.Helper()
	file := os.Getenv("CYCLESTACK_PROGRAMS_NATIVE")
	native := readNativeRuns(t, file)
	var missing []testProgram
	for _, set := range sets {
		for _, p := range set.programs {
			if run, ok := native[p.name]; !ok || run.Rounds != p.rounds {
				missing = append(missing, p)
			}
		}
	}
	if len(missing) == 0 {
		return native
	}
	maps.Copy(native, measureNative(t, dir, missing))
	if file != "" {
		data, err := json.MarshalIndent(native, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return native
}

func readNativeRuns(t *testing.T, file string) map[string]nativeRun {
	t.Helper()
	native := map[string]nativeRun{}
	if file == "" {
		return native
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return native
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &native); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return native
}

// measureNative alternates between programs. So other load on the machine affects all of
// them. The clock is measured next to each run, since it changes with the load of the whole
// processor. So are additions in a cycle: another virtual machine may use the same core.
func measureNative(t *testing.T, dir string, programs []testProgram) map[string]nativeRun {
	t.Helper()
	perf := needPerf(t)
	files := make([]string, len(programs))
	for i, p := range programs {
		files[i] = p.compile(t, dir)
	}
	clock := testProgram{name: "clock", rounds: clockRounds}
	probe := prefixed(clock.commandLine(clock.compile(t, dir), clock.rounds))
	times := make([]processorTime, len(programs))
	for range timedRuns {
		before := measureClock(t, probe)
		for i, p := range programs {
			user, kernel := timeOf(t, prefixed(p.commandLine(files[i], p.rounds)))
			after := measureClock(t, probe)
			times[i].add(user, kernel, clockNow{max(before.hz, after.hz), min(before.width, after.width)}) // an interrupted one has a lower clock
			before = after
		}
	}
	native := map[string]nativeRun{}
	for i, p := range programs {
		n := nativeRun{p.rounds, times[i].user(), times[i].clock.hz, times[i].clock.width, map[string]float64{}}
		t.Logf("%-12s %.4g cycles, at %.4g GHz and %.2f additions in a cycle", p.name, n.User*n.Clock, n.Clock/1e9, n.Width)
		for range sampledRuns {
			sampleFunctions(t, perf, prefixed(p.commandLine(files[i], p.rounds)), n.Samples)
		}
		native[p.name] = n
	}
	return native
}

func prefixed(command []string) []string {
	return append(strings.Fields(os.Getenv("CYCLESTACK_PROGRAMS_PREFIX")), command...)
}

// A clockNow is what clock.c prints: cycles in a second, and additions in a cycle.
type clockNow struct{ hz, width float64 }

func measureClock(t *testing.T, probe []string) (c clockNow) {
	t.Helper()
	out, err := exec.Command(probe[0], probe[1:]...).Output()
	if err == nil {
		_, err = fmt.Sscan(string(out), &c.hz, &c.width)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// userTime returns the processor time that a run takes in user mode, in seconds.
func userTime(t *testing.T, command []string) float64 {
	t.Helper()
	user, _ := timeOf(t, command)
	return user
}

// timeOf returns the processor time that a run takes in user mode and in the kernel, in seconds.
func timeOf(t *testing.T, command []string) (user, kernel float64) {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return c.ProcessState.UserTime().Seconds(), c.ProcessState.SystemTime().Seconds()
}

// A processorTime is that of several runs. The one of the fewest cycles counts. Linux measures
// the sum of user mode and kernel. It divides the sum by clock ticks. Short runs have few of these:
// their least user time would be chance.
type processorTime struct {
	least, all, inUser float64
	clock              clockNow // of the run with the fewest cycles
}

func (p *processorTime) add(user, kernel float64, now clockNow) {
	if p.all == 0 || (user+kernel)*now.hz < p.least*p.clock.hz {
		p.least, p.clock = user+kernel, now
	}
	p.all += user + kernel
	p.inUser += user
}

// user is the user mode's share of the fastest run.
func (p *processorTime) user() float64 { return p.least * p.inUser / p.all }

// emulatedVariants hide from programs what QEMU 7.2's processor lacks. So what is sampled has
// the same variants of memcmp and of SHA-256 as what is simulated.
var emulatedVariants = []string{
	"GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-RTM,-Prefer_No_VZEROUPPER",
	"GODEBUG=cpu.avx512f=off,cpu.avx512bw=off,cpu.avx512vl=off,cpu.sha=off",
}

// sampleFunctions adds the samples of a program's functions: perf's, by cpu-clock in
// user mode.
func sampleFunctions(t *testing.T, perf perfTool, command []string, samples map[string]float64) {
	t.Helper()
	file := filepath.Join(perf.home, "data")
	var err error
	for range perfTries { // Debian's 6.1 crashes now and then
		c := perf.command(append([]string{"record", "-q", "-N", "-e", "cpu-clock:u", "-F", "4000", "-o", file, "--"}, command...)...)
		c.Env = append(c.Env, emulatedVariants...)
		if err = c.Run(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("perf record %q: %v", command, err)
	}
	for _, a := range ours(t, file, "function").Accounts { // perf names no functions without symbols
		if a.Scope.Kind == "function" && len(a.Counts) > 0 {
			samples[plainName(a.Scope.Function)] += float64(a.Counts[0].Samples)
		}
	}
}

// storedPenalties returns the file where calibrate has stored this machine's penalties.
func storedPenalties(t *testing.T) string {
	t.Helper()
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "cyclestack", "penalties-*.toml"))
	if len(files) != 1 {
		t.Fatalf("penalties stored in %q: run cyclestack calibrate", files)
	}
	return files[0]
}
