package oprofile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/counts"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

const depthMost = 32 // of the elements of a document

// isXML reports whether a file's first bytes are those of opreport --xml.
func isXML(head []byte) bool {
	_, tag, ok := bytes.Cut(head, []byte("<profile"))
	return ok && bytes.HasPrefix(bytes.TrimSpace(head), []byte("<")) && bytes.Contains(tag, []byte("schemaversion"))
}

// A document is what has been read of opreport --xml. The names of symbols come behind the
// samples.
type document struct {
	*Reader
	open    []element
	classes map[string]int // the event of each class of samples
	names   map[string]string
	rows    []row
	skipped int // depth below callers and callees
}

// An element is one that is open.
type element struct {
	name    string
	image   string  // of a binary or module
	class   string  // of a count
	text    string  // of a count
	row     int     // of a symbol, binary or module
	own     []int64 // samples of a binary or module
	inner   []int64 // samples of the modules in it
	symbols bool
}

// A row is the samples of a symbol, or of an image without symbols.
type row struct {
	image, symbol string
	samples       []int64
}

// readXML reads opreport's XML, by the schema that comes with oprofile (doc/opreport.xsd). It
// is simple XML, and encoding/xml is large.
func (r *Reader) readXML(src *bufio.Reader) {
	d := &document{Reader: r, classes: map[string]int{}, names: map[string]string{}}
	r.line = 1
	for r.err == nil {
		text, err := d.until(src, '<')
		if k := len(d.open) - 1; k >= 0 && d.open[k].name == "count" && len(d.open[k].text) < lineMost {
			d.open[k].text += text
		}
		if err == nil {
			text, err = d.until(src, '>')
		} else if err == io.EOF && len(d.open) == 0 {
			break
		}
		switch {
		case err == io.EOF:
			r.fail("unexpected EOF")
		case err != nil:
			r.fail("%v", err)
		default:
			d.tag(text)
		}
	}
	if r.err == nil {
		d.finish()
	}
}

// until reads up to a delimiter, which is left out. Of a long text the first part is kept: the
// code of a function is one.
func (d *document) until(src *bufio.Reader, end byte) (string, error) {
	var text []byte
	for quote := byte(0); ; {
		c, err := src.ReadByte()
		if err != nil {
			return string(text), err
		}
		switch {
		case c == '\n':
			d.line++
		case c == end && quote == 0:
			return string(text), nil
		case end == '>' && (c == '"' || c == '\''):
			if quote == 0 {
				quote = c
			} else if quote == c {
				quote = 0
			}
		}
		if len(text) < lineMost {
			text = append(text, c)
		} else if end == '>' {
			return "", errors.New("a tag is too long")
		}
	}
}

// tag takes what is between < and >.
func (d *document) tag(text string) {
	if strings.HasPrefix(text, "?") || strings.HasPrefix(text, "!") {
		return // a declaration, or a comment
	}
	name, isEnd := strings.CutPrefix(text, "/")
	if name = strings.TrimSpace(name); isEnd {
		if k := len(d.open) - 1; k < 0 || d.open[k].name != name {
			d.fail("</%s> closes another element", spelling.Clip(name))
			return
		}
		d.end()
		return
	}
	text, empty := strings.CutSuffix(name, "/")
	attributes := map[string]string{}
	name, text, _ = strings.Cut(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		return r
	}, text), " ")
	for {
		key, rest, ok := strings.Cut(text, "=")
		rest = strings.TrimSpace(rest)
		if !ok || rest == "" {
			break
		}
		value, after, ok := strings.Cut(rest[1:], rest[:1])
		if !ok {
			d.fail("%q is no attribute", spelling.Clip(text))
			return
		}
		attributes[strings.TrimSpace(key)], text = entities.Replace(value), after
	}
	if d.begin(name, attributes); empty && d.err == nil {
		d.end()
	}
}

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")

var power = regexp.MustCompile(`^power\d+$`)

// begin takes the start of an element.
func (d *document) begin(name string, attribute map[string]string) {
	e := element{name: name, row: -1}
	if len(d.open) >= depthMost {
		d.fail("elements are nested more than %d deep", depthMost)
	}
	if d.skipped > 0 || e.name == "callers" || e.name == "callees" {
		d.skipped++
	}
	switch {
	case d.skipped > 0:
	case e.name == "profile":
		d.kind = "opreport"
		if p := attribute["processor"]; power.MatchString(p) {
			d.cpu = p
		}
	case e.name == "timersetup":
		d.fail("the samples are of a timer, and of no event")
	case e.name == "eventsetup":
		n, err := strconv.ParseUint(attribute["setupcount"], 10, 63)
		if err != nil || n == 0 {
			d.fail("%q is not a number of events for a sample", spelling.Clip(attribute["setupcount"]))
		}
		d.add(event{name: attribute["eventname"], cover: math.NaN(), period: float64(n)})
	case e.name == "class":
		n, err := strconv.ParseUint("0"+attribute["event"], 10, 31)
		if err != nil || int(n) >= len(d.events) || len(d.classes) >= placesMost {
			d.fail("%q is not one of %d events", spelling.Clip(attribute["event"]), len(d.events))
		}
		d.classes[attribute["name"]] = int(n)
	case e.name == "binary" || e.name == "module":
		e.image, e.own, e.inner = attribute["name"], make([]int64, len(d.events)), make([]int64, len(d.events))
	case e.name == "symbol" && len(d.open) > 0:
		in := &d.open[len(d.open)-1]
		in.symbols = true
		e.row = d.row(in.image, attribute["idref"])
	case e.name == "count":
		e.class = attribute["class"]
	case e.name == "symboldata" && len(d.names) < placesMost:
		d.names[attribute["id"]] = attribute["name"]
	}
	d.open = append(d.open, e)
}

// row adds a row. Those of a symbol become one row when names are known.
func (d *document) row(image, symbol string) int {
	const most = 4 * placesMost
	if len(d.rows) >= most {
		d.fail("more than %d symbols", most)
		return -1
	}
	d.rows = append(d.rows, row{image, symbol, make([]int64, len(d.events))})
	return len(d.rows) - 1
}

// end takes the end of the innermost element.
func (d *document) end() {
	k := len(d.open) - 1
	e := d.open[k]
	d.open = d.open[:k]
	if d.skipped > 0 {
		d.skipped--
		return
	}
	switch {
	case e.name == "count" && k > 0:
		d.count(&e, &d.open[k-1])
	case e.own != nil && k > 0:
		if in := &d.open[k-1]; in.inner != nil {
			for i, n := range e.own {
				in.inner[i] += n
			}
		}
		if e.symbols {
			break
		}
		// Some versions count the modules with the binary that loaded them.
		if at := d.row(e.image, ""); at >= 0 {
			for i, n := range e.own {
				if n != e.inner[i] {
					d.rows[at].samples[i] = n
				}
			}
		}
	}
}

// count takes a number of samples of the element around it.
func (d *document) count(c, of *element) {
	i, ok := d.classes[c.class]
	if !ok && c.class != "" || len(d.events) == 0 {
		d.fail("samples of the unknown class %q", spelling.Clip(c.class))
		return
	}
	n, err := strconv.ParseInt(strings.TrimSpace(c.text), 10, 63)
	if err != nil || n < 0 {
		d.fail("%q is not a number of samples", spelling.Clip(c.text))
		return
	}
	switch {
	case of.name == "symbol" && of.row >= 0:
		d.rows[of.row].samples[i] += n
	case i < len(of.own):
		of.own[i] += n
	}
}

// finish adds up the rows.
func (d *document) finish() {
	for _, row := range d.rows {
		c := counts.Code{Module: row.image}
		if d.by == counts.Function && row.symbol != "" {
			if c.Function = d.names[row.symbol]; c.Function == "" {
				c.Function = "symbol " + row.symbol
			}
		}
		own := d.placeOf(&c)
		for i, n := range row.samples {
			d.begun = d.begun || n > 0
			d.events[i].samples += n
			if own != nil {
				own[i] += n
			}
		}
	}
	d.percent = 100
}
