// Program deep calls itself and the standard library.
package main

import (
	"fmt"
	"os"
	"sort"
)

var total int

//go:noinline
func deep(n int) int {
	if n == 0 {
		for i := range 1000000 {
			total += i * i
		}
		return total
	}
	return deep(n-1) + 1
}

func main() {
	for range 60 {
		deep(30)
		list := make([]string, 2000+total%2) // on the heap
		for i := range list {
			list[i] = fmt.Sprint(i * 7919 % 2000)
		}
		sort.Strings(list)
	}
	fmt.Fprintln(os.Stderr, total)
}
