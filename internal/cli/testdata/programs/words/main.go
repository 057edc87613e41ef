// Command words counts words with maps, sorts them and joins them: a Go program,
// with its garbage.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
)

//go:noinline
func write() string {
	var b strings.Builder
	for i := range 20000 {
		b.WriteString("w" + strconv.Itoa(i*i%7919) + " ")
	}
	return b.String()
}

//go:noinline
func count(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Fields(text) {
		counts[word]++
	}
	return counts
}

//go:noinline
func ordered(counts map[string]int) []string {
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	sort.Strings(words)
	return words
}

func main() {
	rounds := 1
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	sum := 0
	for range rounds {
		sum += len(strings.Join(ordered(count(write())), ","))
	}
	fmt.Println(sum)
}
