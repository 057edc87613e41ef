package export

import (
	"bufio"
	"encoding/json"
	"iter"
	"math"
	"strconv"
)

// A jsonStream writes JSON piece by piece. The first error stays.
type jsonStream struct {
	w   *bufio.Writer
	err error
}

// text writes JSON.
func (j *jsonStream) text(s string) *jsonStream {
	if j.err == nil {
		_, j.err = j.w.WriteString(s)
	}
	return j
}

// value writes a value. It escapes what could end a script around the text.
func (j *jsonStream) value(v any) *jsonStream {
	if j.err != nil {
		return j
	}
	b, err := json.Marshal(v)
	if err == nil {
		_, err = j.w.Write(b)
	}
	j.err = err
	return j
}

// writeList writes the elements of a list, without its brackets.
func writeList[T any](j *jsonStream, items iter.Seq[T], write func(T)) {
	first := true
	for item := range items {
		if !first {
			j.text(",")
		}
		first = false
		write(item)
	}
}

// integer writes a number.
func (j *jsonStream) integer(n int32) {
	j.w.Write(strconv.AppendInt(j.w.AvailableBuffer(), int64(n), 10)) // the error stays, and flush returns it
}

// float writes a number as package json does.
func (j *jsonStream) float(v float64) {
	if size := math.Abs(v); v == 0 || size >= 1e-6 && size < 1e21 {
		j.w.Write(strconv.AppendFloat(j.w.AvailableBuffer(), v, 'f', -1, 64))
		return
	}
	j.value(v) // with an exponent, or not a number
}

func (j *jsonStream) flush() error {
	if j.err != nil {
		return j.err
	}
	return j.w.Flush()
}

// A column is a list that grows without copies.
type column[T any] struct {
	blocks [][]T
	n      int
}

// columnBlock is the number of items in a block.
const columnBlock = 1 << 14

func (c *column[T]) add(item T) {
	if c.n%columnBlock == 0 {
		c.blocks = append(c.blocks, make([]T, 0, min(c.n, columnBlock))) // the first one grows
	}
	last := &c.blocks[c.n/columnBlock]
	*last = append(*last, item)
	c.n++
}

func (c *column[T]) at(i int) T { return c.blocks[i/columnBlock][i%columnBlock] }

func (c *column[T]) all(yield func(T) bool) {
	for _, block := range c.blocks {
		for _, item := range block {
			if !yield(item) {
				return
			}
		}
	}
}

// join appends a column. No item can be added then.
func (c *column[T]) join(other *column[T]) {
	c.blocks, c.n = append(c.blocks, other.blocks...), c.n+other.n
}
