package export

import (
	"bufio"
	"encoding/json"
	"math"
	"strconv"
)

// A jsonStream writes JSON piece by piece. The first error stays.
type jsonStream struct {
	w   *bufio.Writer
	err error
}

// text writes JSON. In its many callers it would make the program some kilobytes larger.
//
//go:noinline
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
