package plan_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

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

// TestAgainstToplev compares the numbers of groups, and the shares of nodes whose
// events are counted together, with toplev's, cell by cell.
func TestAgainstToplev(t *testing.T) {
	for _, peer := range peers(t) {
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

// TestPublishedTable checks that the comparison in the documentation is what
// comes out.
func TestPublishedTable(t *testing.T) {
	doc, err := os.ReadFile("../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := map[string][]string{}, map[string][]string{}
	together := map[string]string{}
	var order []string
	for _, peer := range peers(t) {
		key := peer.cpu + " | off"
		if peer.smt {
			key = peer.cpu + " | on"
		}
		m, events := load(t, peer.cpu, "tma")
		p, err := plan.New(m, events, plan.Options{Level: peer.level, SMT: peer.smt})
		if err != nil {
			t.Fatal(err)
		}
		if ours[key] == nil {
			order = append(order, key)
		}
		ours[key] = append(ours[key], strconv.Itoa(len(p.Groups)))
		theirs[key] = append(theirs[key], strconv.Itoa(peer.groups))
		have, of := p.Together()
		countable := ""
		if peer.countable != peer.together {
			countable = fmt.Sprintf(" (%d)", peer.countable)
		}
		together[key] = fmt.Sprintf("%d of %d | %d%s of %d", have, of, peer.together, countable, peer.nodes)
	}
	for _, key := range order {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(key+" | "+strings.Join(ours[key], " / ")) + ` \| [^|]* \| ` +
			regexp.QuoteMeta(strings.Join(theirs[key], " / ")+" | "+together[key]) + ` \|$`)
		if !row.Match(doc) {
			t.Errorf("docs/plan.md has no row %s", row)
		}
	}
}
