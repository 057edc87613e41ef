// Command routes finds the shortest ways over a map with a heap, lets cells live on it,
// and adds up its rows in goroutines: a Go program with interfaces, slices and channels.
package main

import (
	"container/heap"
	"fmt"
	"os"
	"strconv"
)

const side = 96

type field [side][side]byte

type way struct{ at, far int }

type queue []way

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, k int) bool { return q[i].far < q[k].far }
func (q queue) Swap(i, k int)      { q[i], q[k] = q[k], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(way)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

//go:noinline
func shortest(cost *field, from int) []int {
	far := make([]int, side*side)
	for i := range far {
		far[i] = 1 << 30
	}
	far[from] = 0
	open := &queue{{from, 0}}
	for open.Len() > 0 {
		w := heap.Pop(open).(way)
		if w.far > far[w.at] {
			continue
		}
		x, y := w.at%side, w.at/side
		for v := max(0, y-1); v <= min(side-1, y+1); v++ {
			for u := max(0, x-1); u <= min(side-1, x+1); u++ {
				if next := w.far + int(cost[v][u]); next < far[v*side+u] {
					far[v*side+u] = next
					heap.Push(open, way{v*side + u, next})
				}
			}
		}
	}
	return far
}

//go:noinline
func live(to, from *field) {
	for y := range side {
		above, here, below := &from[(y+side-1)%side], &from[y], &from[(y+1)%side]
		for x := range side {
			left, right := (x+side-1)%side, (x+1)%side
			n := above[left] + above[x] + above[right] + here[left] + here[right] + below[left] + below[x] + below[right]
			if n == 3 || n == 2 && here[x] == 1 {
				to[y][x] = 1
			} else {
				to[y][x] = 0
			}
		}
	}
}

type row struct {
	y   int
	far []int
}

//go:noinline
func checksum(far []int) (sum uint32) {
	a, b := uint32(1), uint32(0)
	for _, v := range far {
		for ; v > 0; v >>= 8 {
			a = (a + uint32(v&255)) % 65521
			b = (b + a) % 65521
		}
	}
	return b<<16 | a
}

//go:noinline
func sums(far []int) (sum uint32) {
	rows, results := make(chan row, 8), make(chan uint32, 8)
	for range 2 {
		go func() {
			for r := range rows {
				results <- checksum(r.far) * uint32(r.y+1)
			}
		}()
	}
	go func() {
		for y := range side {
			rows <- row{y, far[y*side : (y+1)*side]}
		}
		close(rows)
	}()
	for range side {
		sum += <-results
	}
	return sum
}

//go:noinline
func reachable(far []int, most int) map[int]int {
	counts := map[int]int{}
	for i, d := range far {
		if d < most {
			counts[d/8*256+i%side/12]++
		}
	}
	return counts
}

func main() {
	rounds := 1
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	var cost, cells, next field
	seed := uint64(88172645463325252)
	for y := range side {
		for x := range side {
			seed ^= seed << 13
			seed ^= seed >> 7
			seed ^= seed << 17
			cost[y][x] = byte(seed%9 + 1)
			cells[y][x] = byte(seed >> 20 & 1)
		}
	}
	sum := 0
	for r := range rounds {
		far := shortest(&cost, (r*1237)%(side*side))
		sum += int(sums(far)) + len(reachable(far, 150))
		for range 16 {
			live(&next, &cells)
			cells, next = next, cells
		}
		cost[r%side][r*7%side] ^= 1
		sum += int(cells[r%side][3])
	}
	fmt.Println(sum)
}
