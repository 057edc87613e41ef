package plan_test

import (
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/internal/testlong"
	"github.com/cyclestack/cyclestack/plan"
)

// A peer is a plan of toplev's for one processor and level.
type peer struct {
	cpu                                string
	smt                                bool
	level                              int
	groups, nodes, together, countable int
	target                             int // groups asked of ours; 0 for none
}

func peers(t *testing.T) []peer {
	t.Helper()
	f, err := os.Open("testdata/toplev.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []peer
	for _, row := range rows[1:] {
		p := peer{cpu: row[0], smt: row[1] == "on"}
		for i, to := range []*int{&p.level, &p.groups, &p.nodes, &p.together, &p.countable, &p.target} {
			if row[2+i] == "" {
				continue
			}
			if *to, err = strconv.Atoi(row[2+i]); err != nil {
				t.Fatalf("%v: %v", row, err)
			}
		}
		all = append(all, p)
	}
	return all
}

// TestAgainstToplev compares the plans with toplev's, cell by cell: the numbers of
// groups, and the shares of nodes counted together.
func TestAgainstToplev(t *testing.T) {
	t.Parallel()
	for n, peer := range peers(t) {
		if n%testlong.Size(2, 1) != 0 {
			continue
		}
		m, events := load(t, peer.cpu, "tma")
		p, err := plan.New(m, events, plan.Options{Level: peer.level, SMT: peer.smt})
		if err != nil {
			t.Fatal(err)
		}
		together, of := p.Together()
		t.Logf("%-15s SMT %-5t level %d: %2d groups, bound %2d, %3d of %3d nodes together; toplev %2d groups, %3d of %3d, %3d countable",
			peer.cpu, peer.smt, peer.level, len(p.Groups), p.LowerBound, together, of, peer.groups, peer.together, peer.nodes, peer.countable)
		if len(p.Groups) > peer.groups {
			t.Errorf("%s, SMT %t, level %d: %d groups, toplev has %d", peer.cpu, peer.smt, peer.level, len(p.Groups), peer.groups)
		}
		if peer.target > 0 && len(p.Groups) > peer.target {
			t.Errorf("%s, SMT %t, level %d: %d groups, want %d at most", peer.cpu, peer.smt, peer.level, len(p.Groups), peer.target)
		}
		if together*peer.nodes < peer.countable*of {
			t.Errorf("%s, SMT %t, level %d: %d of %d nodes together, toplev has %d of %d", peer.cpu, peer.smt, peer.level, together, of, peer.countable, peer.nodes)
		}
	}
}

var update = flag.Bool("update", false, "write the comparison in the documentation anew")

// TestPublishedTable checks that the comparison in the documentation is what
// comes out. Its plans are those of TestAgainstToplev.
func TestPublishedTable(t *testing.T) {
	testlong.Only(t)
	if raceDetector {
		t.Skip("slow with the race detector")
	}
	const file = "../docs/plan.md"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const head = "|---|---|---|---|---|---|---|\n"
	before, after, ok := strings.Cut(string(doc), head)
	old, after, ended := strings.Cut(after, "\n\n")
	if !ok || !ended {
		t.Fatalf("%s has no table of seven columns", file)
	}
	rows := comparison(t)
	if *update {
		text := before + head + strings.Join(rows, "\n") + "\n\n" + after
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := strings.Split(old, "\n"); !slices.Equal(rows, want) {
		t.Errorf("%s has\n%s\nbut with -update it were\n%s", file, old, strings.Join(rows, "\n"))
	}
}

// TestPublishedErrata checks what the documentation says that keeping to the
// workaround for errata takes.
func TestPublishedErrata(t *testing.T) {
	all := planFor(t, "ivybridge", "tma", plan.Options{SMT: true})
	kept := planFor(t, "ivybridge", "tma", plan.Options{SMT: true, Errata: true})
	have, _ := kept.Together()
	could, _ := all.Together()
	want := fmt.Sprintf("%d groups instead of %d, and %d nodes are together instead of %d", len(kept.Groups), len(all.Groups), have, could)
	doc, err := os.ReadFile("../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(doc)), " "), want) {
		t.Errorf("docs/plan.md does not say %q", want)
	}
}

// comparison returns the rows of the table: one for each processor, with and
// without SMT, with what all levels take, and the shares at the deepest.
func comparison(t *testing.T) (rows []string) {
	t.Helper()
	all := peers(t)
	for i := 0; i < len(all); {
		var ours, theirs, gaps []string
		last, p := all[i], (*plan.Plan)(nil)
		for ; i < len(all) && all[i].cpu == last.cpu && all[i].smt == last.smt; i++ {
			last = all[i]
			m, events := load(t, last.cpu, "tma")
			var err error
			if p, err = plan.New(m, events, plan.Options{Level: last.level, SMT: last.smt}); err != nil {
				t.Fatal(err)
			}
			ours = append(ours, strconv.Itoa(len(p.Groups)))
			theirs = append(theirs, strconv.Itoa(last.groups))
			if gap := len(p.Groups) - p.LowerBound; gap > 0 {
				gaps = append(gaps, fmt.Sprintf("gap %d at %d", gap, last.level))
			}
		}
		proved, smt, countable := "all", "off", ""
		if len(gaps) > 0 {
			proved = strings.Join(gaps, ", ")
		}
		if last.smt {
			smt = "on"
		}
		if last.countable != last.together {
			countable = fmt.Sprintf(" (%d)", last.countable)
		}
		together, of := p.Together()
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s | %s | %d of %d, %.0f %% | %d%s of %d, %.0f %% |",
			last.cpu, smt, strings.Join(ours, " / "), proved, strings.Join(theirs, " / "),
			together, of, 100*float64(together)/float64(of),
			last.together, countable, last.nodes, 100*float64(last.countable)/float64(last.nodes)))
	}
	return rows
}
