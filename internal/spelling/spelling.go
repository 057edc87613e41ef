// Package spelling finds the names that somebody may have meant who mistyped one.
package spelling

import (
	"cmp"
	"strings"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// longest is how long a word is at most that is compared with others.
const longest = 256

// Distance is the least number of letters to insert, delete or replace to make t
// of s (Levenshtein). What is far too long to be a name is far from all.
func Distance(s, t string) int {
	if len(s) > longest || len(t) > longest {
		return max(len(s), len(t))
	}
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(s) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(t) {
			cost := diagonal
			if s[i] != t[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(t)]
}

// Near returns the names that are spelt most like s or contain it, at most so many. Case does
// not matter.
func Near(s string, names []string, most int) []string {
	s = strings.ToLower(s)
	type candidate struct {
		name     string
		distance int
	}
	var list []candidate
	for _, name := range names {
		lower := strings.ToLower(name)
		d := Distance(s, lower)
		if d <= 1+len(s)/4 || s != "" && strings.Contains(lower, s) {
			list = append(list, candidate{name, d})
		}
	}
	sorting.Stable(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var near []string
	for _, c := range list[:min(len(list), most)] {
		near = append(near, c.name)
	}
	return near
}

// Clip shortens what a message quotes of a file or a command line.
func Clip(s string) string {
	const most = 80 // bytes
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
