package paint

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
)

// levels are the steps of each colour in a palette of sixels: 6 × 6 × 6 colours.
const levels = 6

// Sixel writes an image for terminals with sixels (DEC, VT340).
func Sixel(w io.Writer, img *image.RGBA) error {
	out := bufio.NewWriter(w)
	b := img.Bounds()
	fmt.Fprintf(out, "\x1bP0;1q\"1;1;%d;%d", b.Dx(), b.Dy())
	used := [levels * levels * levels]bool{}
	index := func(x, y int) int {
		c := img.RGBAAt(x, y)
		step := func(v uint8) int { return (int(v)*(levels-1) + 127) / 255 }
		return (step(c.R)*levels+step(c.G))*levels + step(c.B)
	}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			used[index(x, y)] = true
		}
	}
	for i, u := range used {
		if u {
			percent := func(v int) int { return v * 100 / (levels - 1) }
			fmt.Fprintf(out, "#%d;2;%d;%d;%d", i, percent(i/levels/levels), percent(i/levels%levels), percent(i%levels))
		}
	}
	rows := map[int][]byte{} // of six lines: by colour, the dots
	for top := b.Min.Y; top < b.Max.Y; top += 6 {
		clear(rows)
		for y := top; y < min(top+6, b.Max.Y); y++ {
			for x := b.Min.X; x < b.Max.X; x++ {
				i := index(x, y)
				if rows[i] == nil {
					rows[i] = make([]byte, b.Dx())
				}
				rows[i][x-b.Min.X] |= 1 << (y - top)
			}
		}
		for i := range used {
			if dots := rows[i]; dots != nil {
				fmt.Fprintf(out, "#%d", i)
				repeat(out, dots)
				out.WriteByte('$')
			}
		}
		out.WriteByte('-')
	}
	out.WriteString("\x1b\\\n")
	return out.Flush()
}

// repeat writes dots with their repeats.
func repeat(out *bufio.Writer, dots []byte) {
	for i := 0; i < len(dots); {
		n := 1
		for i+n < len(dots) && dots[i+n] == dots[i] {
			n++
		}
		c := dots[i] + '?'
		if n > 3 {
			fmt.Fprintf(out, "!%d%c", n, c)
		} else {
			out.Write(bytes.Repeat([]byte{c}, n))
		}
		i += n
	}
}

// pieceMost is how many letters of data kitty takes at a time.
const pieceMost = 4096

// Kitty writes an image in the graphics protocol of kitty, which other terminals have too.
func Kitty(w io.Writer, img image.Image) error {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString(b.Bytes())
	out := bufio.NewWriter(w)
	for first := true; first || text != ""; first = false {
		piece := text[:min(len(text), pieceMost)]
		text = text[len(piece):]
		more := 0
		if text != "" {
			more = 1
		}
		if first {
			fmt.Fprintf(out, "\x1b_Gf=100,a=T,m=%d;%s\x1b\\", more, piece)
		} else {
			fmt.Fprintf(out, "\x1b_Gm=%d;%s\x1b\\", more, piece)
		}
	}
	out.WriteByte('\n')
	return out.Flush()
}

// PNG writes an image as PNG.
func PNG(w io.Writer, img image.Image) error { return png.Encode(w, img) }
