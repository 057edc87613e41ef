// Command records writes structures as JSON, reads them again, sorts and groups them: a
// Go program like a service, with strings, maps and slices.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
)

type record struct {
	id     int
	name   string
	city   string
	amount float64
	note   string
	tags   []string
}

var cities = []string{"Bergen", "Porto", "Łódź", "Graz", "Leeds", "Turku", "Nantes", "Split"}

var notes = []string{"paid", "on", "time", "by", "transfer", "waits for", "the", "second\n", "letter", "asked", "to", "call back"}

var seed uint64 = 88172645463325252

func random(n int) int {
	seed ^= seed << 13
	seed ^= seed >> 7
	seed ^= seed << 17
	return int(seed >> 1 % uint64(n))
}

//go:noinline
func generate(n int) []record {
	list := make([]record, n)
	for i := range list {
		r := &list[i]
		r.id, r.name, r.city = i, "customer \""+strconv.Itoa(random(n))+"\"", cities[random(len(cities))]
		r.amount = float64(random(1000000)) / 100
		for range 10 + random(20) {
			r.note += notes[random(len(notes))] + " "
		}
		for range random(4) {
			r.tags = append(r.tags, "tag-"+strconv.Itoa(random(50)))
		}
	}
	return list
}

//go:noinline
func quote(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, "\\u00"...)
			b = append(b, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

//go:noinline
func encode(b []byte, list []record) []byte {
	for i := range list {
		r := &list[i]
		b = append(b, `{"id":`...)
		b = strconv.AppendInt(b, int64(r.id), 10)
		b = append(b, `,"name":`...)
		b = quote(b, r.name)
		b = append(b, `,"city":`...)
		b = quote(b, r.city)
		b = append(b, `,"note":`...)
		b = quote(b, r.note)
		b = append(b, `,"amount":`...)
		b = strconv.AppendFloat(b, r.amount, 'f', 2, 64)
		b = append(b, `,"tags":[`...)
		for k, tag := range r.tags {
			if k > 0 {
				b = append(b, ',')
			}
			b = quote(b, tag)
		}
		b = append(b, "]}\n"...)
	}
	return b
}

//go:noinline
func unquote(text []byte, at int) (string, int) {
	at++
	end := at
	for text[end] != '"' && text[end] != '\\' {
		end++
	}
	if text[end] == '"' {
		return string(text[at:end]), end + 1
	}
	var b strings.Builder
	b.Write(text[at:end])
	for at = end; text[at] != '"'; at++ {
		c := text[at]
		if c == '\\' {
			at++
			if c = text[at]; c == 'u' {
				n, _ := strconv.ParseUint(string(text[at+1:at+5]), 16, 8)
				c, at = byte(n), at+4
			}
		}
		b.WriteByte(c)
	}
	return b.String(), at + 1
}

//go:noinline
func decode(list []record, text []byte) []record {
	var r record
	key := ""
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '\n':
			list = append(list, r)
			r = record{}
			at++
		case c == '"':
			var s string
			s, at = unquote(text, at)
			switch {
			case text[at] == ':':
				key = s
			case key == "name":
				r.name = s
			case key == "city":
				r.city = s
			case key == "note":
				r.note = s
			case key == "tags":
				r.tags = append(r.tags, s)
			}
		case '0' <= c && c <= '9':
			from := at
			for text[at] == '.' || '0' <= text[at] && text[at] <= '9' {
				at++
			}
			if key == "id" {
				r.id, _ = strconv.Atoi(string(text[from:at]))
			} else {
				r.amount, _ = strconv.ParseFloat(string(text[from:at]), 64)
			}
		default:
			at++
		}
	}
	return list
}

//go:noinline
func group(list []record) map[string]float64 {
	sums := map[string]float64{}
	for _, r := range list {
		sums[r.city] += r.amount
		for _, tag := range r.tags {
			sums[tag] += r.amount
		}
	}
	return sums
}

//go:noinline
func order(list []record) {
	sort.Slice(list, func(i, k int) bool {
		a, b := &list[i], &list[k]
		if a.city != b.city {
			return a.city < b.city
		}
		return a.amount > b.amount
	})
}

func main() {
	rounds := 1
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	sum := 0.0
	var text []byte
	var read []record
	list := generate(1000)
	for range rounds {
		text = encode(text[:0], list)
		read = decode(read[:0], text)
		order(read)
		sum += read[len(read)/2].amount + group(read)[cities[0]]
	}
	fmt.Printf("%.2f\n", sum)
}
