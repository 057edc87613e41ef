// Command primes is a program to look at, not to learn from.
package main

import (
	"fmt"
	"sort"
	"strings"
)

type sieve []bool

func (s sieve) mark(n int) { s[n] = true }

func (s sieve) strike(p int) {
	for i := p * p; i < len(s); i += p {
		s.mark(i)
	}
}

//go:noinline
func primes(n int) []int {
	s := make(sieve, n)
	var list []int
	for i := 2; i < n; i++ {
		if !s[i] {
			list = append(list, i)
			s.strike(i)
		}
	}
	return list
}

func main() {
	list := primes(1000)
	sort.Slice(list, func(i, j int) bool { return list[i]%10 < list[j]%10 })
	fmt.Println(len(list), strings.Repeat("=", list[0]))
}
