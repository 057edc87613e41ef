package report

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/model"
)

// Explanations are written for a family of processors. What concerns other ones than that
// asked about is left out. Such clauses begin or end with "up to Broadwell", "since Golden
// Cove", "on Ice Lake" or "on E-cores".

// generations are Intel's cores as texts name them, in the order of their introduction.
var generations = []struct {
	name string
	rank int
}{
	{"Sandy Bridge", 1}, {"Ivy Bridge", 2}, {"Haswell", 3}, {"Broadwell", 4}, {"Skylake", 5}, {"Cascade Lake", 6},
	{"Ice Lake", 7}, {"Tiger Lake", 8}, {"Rocket Lake", 9}, {"Golden Cove", 10}, {"Alder Lake", 10}, {"Sapphire Rapids", 10},
	{"Sapphire", 10}, {"Emerald Rapids", 11}, {"Redwood Cove", 12}, {"Meteor Lake", 12}, {"Granite Rapids", 13},
	{"Lion Cove", 14}, {"Lunar Lake", 14}, {"Arrow Lake", 14}, {"Cougar Cove", 15}, {"Panther Lake", 15}, {"Coyote Cove", 16}, {"Nova Lake", 16},
}

// smallCores are the names of E-cores in the titles of processors.
var smallCores = regexp.MustCompile(`Gracemont|Crestmont|Skymont|Darkmont|Arctic Wolf|E-cores|Sierra Forest|Grand Ridge|Clearwater|Tremont|Goldmont`)

// rankOf is the generation of a name; 0 if it is none.
func rankOf(name string) int {
	for _, g := range generations {
		if g.name == name {
			return g.rank
		}
	}
	return 0
}

// A qualifier says which processors a clause is about.
type qualifier struct {
	how   string // "up to", "since", "before", "on"
	names []string
}

// qualifiers are those of a clause.
var qualifiers = sync.OnceValue(func() *regexp.Regexp {
	var names []string
	for _, g := range generations {
		names = append(names, g.name)
	}
	sorting.Stable(names, func(a, b string) int { return len(b) - len(a) })
	name := "(?:" + strings.Join(names, "|") + ")"
	list := name + "(?:(?:, | and | or | to )" + name + ")*"
	return regexp.MustCompile(`(?:\b([Uu]p to|[Ss]ince|[Bb]efore|[Oo]n|[Oo]nly|[Ff]rom) (` + list + `|[EP]-cores))|(?:^(` + list + `))`)
})

// between divides a list of names.
var between = regexp.MustCompile(`, | and | or `)

// applies reports whether a qualifier is about a processor.
func (q *qualifier) applies(rank int, small bool) bool {
	switch q.names[0] {
	case "E-cores":
		return small
	case "P-cores":
		return !small
	}
	if small {
		return q.how == "on" // what is said of the others' generations says nothing here
	}
	least, most := 1<<10, 0
	for _, n := range q.names {
		least, most = min(least, rankOf(n)), max(most, rankOf(n))
	}
	switch q.how {
	case "up to":
		return rank <= most
	case "since", "from":
		return rank >= least
	case "before":
		return rank < least
	}
	return slices.ContainsFunc(q.names, func(n string) bool { return rankOf(n) == rank })
}

// qualifiersOf finds the qualifiers of a clause.
func qualifiersOf(clause string) (list []qualifier) {
	for _, m := range qualifiers().FindAllStringSubmatch(clause, -1) {
		how, names := strings.ToLower(m[1]), m[2]+m[3]
		if how == "" || how == "only" {
			how = "on"
		}
		if from, to, ok := strings.Cut(names, " to "); ok { // a span, and perhaps more
			low := rankOf(from)
			all := between.Split(to, -1)
			high := rankOf(all[0])
			for _, g := range generations {
				if g.rank >= low && g.rank <= high {
					all = append(all, g.name)
				}
			}
			list = append(list, qualifier{"on", all})
			continue
		}
		list = append(list, qualifier{how, between.Split(names, -1)})
	}
	return list
}

// complement begins a clause about all processors that the clause before is not about.
var complement = regexp.MustCompile(`^(before|afterwards|later cores(?: and E-cores)?|others),? `)

// concerning returns a text without the clauses that concern other processors.
func concerning(cpu *model.CPU, text string) string {
	rank, small := 0, smallCores.MatchString(cpu.Title)
	for _, g := range generations {
		if strings.Contains(cpu.Title, g.name) {
			rank = g.rank
		}
	}
	if rank == 0 && !small {
		return text
	}
	var paragraphs []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		var kept []string
		for _, sentence := range strings.SplitAfter(strings.Join(strings.Fields(paragraph), " "), ". ") {
			if s := sentenceFor(strings.TrimSpace(sentence), rank, small); s != "" {
				kept = append(kept, s)
			}
		}
		if len(kept) > 0 {
			paragraphs = append(paragraphs, strings.Join(kept, " "))
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// allConcerning is concerning of each of several texts, without those that nothing is left
// of.
func allConcerning(cpu *model.CPU, texts []string) []string {
	var list []string
	for _, text := range texts {
		if s := concerning(cpu, text); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// early is where a qualifier that is about a whole clause begins at the latest.
const early = 25

// withoutPart is a clause without the part between commas, or in brackets, that its
// qualifier is about; "" if that is all of it.
func withoutPart(clause string) string {
	at := qualifiers().FindStringIndex(clause)
	if open := strings.LastIndex(clause[:at[0]], " ("); open > 0 && !strings.Contains(clause[open:at[0]], ")") {
		if end := strings.Index(clause[at[1]:], ")"); end >= 0 {
			return clause[:open] + clause[at[1]+end+1:]
		}
	}
	comma := strings.LastIndex(clause[:at[0]], ",")
	if at[0] <= early || comma < 0 {
		return ""
	}
	rest := ""
	if end := strings.Index(clause[at[1]:], ","); end >= 0 {
		rest = clause[at[1]+end:]
	}
	return clause[:comma] + rest
}

// sentenceFor is what a sentence says of a processor.
func sentenceFor(sentence string, rank int, small bool) string {
	var kept []string
	others := false // the clause before is about other processors
	end := ""
	if trimmed := strings.TrimSuffix(sentence, "."); trimmed != sentence {
		sentence, end = trimmed, "."
	}
	for clause := range strings.SplitSeq(sentence, "; ") {
		rest := complement.ReplaceAllString(clause, "")
		list := qualifiersOf(clause)
		about := len(list) != 1 || list[0].applies(rank, small) || strings.Contains(clause, "above all") || strings.Contains(clause, "nlike")
		switch {
		case rest != clause && others:
			kept = append(kept, rest) // of this processor, and there is nothing to contrast it with
		case rest != clause && len(kept) > 0 && len(list) == 0:
		case len(list) == 0 && others: // it goes on about other processors
		case about:
			kept = append(kept, clause)
		default:
			if clause = withoutPart(clause); clause != "" {
				kept = append(kept, clause)
			}
		}
		if rest == clause || len(list) > 0 {
			others = !about
		}
	}
	if len(kept) == 0 {
		return ""
	}
	s := strings.Join(kept, "; ") + end
	if s != "" && s[0] >= 'a' && s[0] <= 'z' && sentence[0] >= 'A' && sentence[0] <= 'Z' {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}
