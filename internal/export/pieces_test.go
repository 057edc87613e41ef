package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPiecesFolded: of too many stacks and places the lightest are together, and nothing is
// lost in any interval.
func TestPiecesFolded(t *testing.T) {
	const stacks, intervals, places = 2000, 30, 300
	var list []*Stack
	frames := map[int]*Frame{}
	frame := func(n int) *Frame {
		if frames[n] == nil {
			frames[n] = &Frame{Function: fmt.Sprint("f", n)}
		}
		return frames[n]
	}
	values := make([]float64, stacks)
	var pieces []*Piece
	var events, amounts []float64 // by interval
	for range intervals {
		p, event, amount := &Piece{Start: float64(len(pieces))}, 0.0, 0.0
		for i := range stacks {
			if rand.IntN(3) == 0 {
				v := float64(1 + 1000/(1+i))
				values[i] += v
				event += v
				p.Stacks = append(p.Stacks, Part{Stack: i, Place: 1 + i%places, Events: []float64{v}, Wholes: []float64{v}})
			}
		}
		for i := range places {
			p.Places = append(p.Places, PlacePart{Place: 1 + i, Amounts: []float64{float64(i)}})
			amount += float64(i)
		}
		pieces, events, amounts = append(pieces, p), append(events, event), append(amounts, amount)
	}
	for i, v := range values {
		list = append(list, &Stack{Number: i, Frames: []*Frame{frame(i % 7), frame(i % 91), frame(i)}, Values: []float64{v / 2, v}})
	}
	cells, amountsMost, boxes := pieceCells, pieceAmounts, pieceBoxes
	defer func() { pieceCells, pieceAmounts, pieceBoxes = cells, amountsMost, boxes }()
	for _, tt := range []struct {
		cells, amounts, boxes int
		others                bool
	}{{1 << 20, 1 << 20, 1 << 20, false}, {6000, 1 << 20, 1 << 20, true}, {1 << 20, 2000, 1 << 20, true}, {1 << 20, 1 << 20, 200, true}, {1, 1, 1, true}} {
		pieceCells, pieceAmounts, pieceBoxes = tt.cells, tt.amounts, tt.boxes
		var b bytes.Buffer
		p := &Profile{Types: []Type{{Name: "Node", Path: "Node", Unit: "cycles"}, {Name: "cycles"}}, Default: 1, Units: []string{"cycles"}, Stacks: slices.Values(list), Pieces: slices.Values(pieces)}
		written, err := StacksAndPieces(io.Discard, &b, p)
		if err != nil || written.Intervals != intervals || (written.Others > 0) != tt.others {
			t.Errorf("%+v: %+v, %v", tt, written, err)
		}
		var d struct {
			Boxes     [][4]int
			Intervals []struct{ Places, Rows []float64 }
		}
		if err := json.Unmarshal(b.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		n := 0
		sum := func(list []float64, typ int) (v float64) {
			for ; len(list) > 0; list = list[3+2*int(list[2]):] {
				for i := range int(list[2]) {
					if n++; int(list[3+2*i]) == typ {
						v += list[4+2*i]
					}
				}
			}
			return v
		}
		for i, in := range d.Intervals {
			if got := sum(in.Rows, 1); got != events[i] {
				t.Errorf("%+v: interval %d has %v, want %v", tt, i, got, events[i])
			}
			if got := sum(in.Places, 0); got != amounts[i] {
				t.Errorf("%+v: interval %d has the amount %v, want %v", tt, i, got, amounts[i])
			}
		}
		if tt.boxes > 1 && (len(d.Boxes) > tt.boxes || n > 3*tt.cells+2*tt.amounts) {
			t.Errorf("%+v: %d boxes, %d numbers", tt, len(d.Boxes), n)
		}
	}
}
