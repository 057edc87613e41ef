// Package web writes pages: one HTML file that needs no network, with the views of the
// JSON documents in it. It registers the format html of accounts, differences and
// annotated functions with package report.
//
//	p := web.New(w, "./app")
//	err := p.Add(func(w io.Writer) error { return report.Write(w, "json", document, o) })
//	…
//	err = p.Finish()
//
// The data of a page are the JSON documents as --format json prints them, compressed. The
// page's script, in src, makes the views. Names come from recordings, which may come from
// anybody: the script never takes them for markup, and the page's policy allows no other
// script.
package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // for the script and the style
	"encoding/base64"
	"errors"
	"html"
	"io"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/internal/page"
)

//go:generate go run -tags esbuild ../gen/web src page

var (
	//go:embed page/page.js.gz
	packedScript []byte
	//go:embed page/page.css.gz
	packedStyle []byte
)

// Script returns the script of the page.
var Script = sync.OnceValue(func() string { return unpacked(packedScript) })

// Style returns the style of the page.
var Style = sync.OnceValue(func() string { return unpacked(packedStyle) })

// unpacked returns embedded text, which a test has read.
func unpacked(data []byte) string {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// A Page is a page that is being written.
type Page struct {
	w     *bufio.Writer
	plain bytes.Buffer
	err   error
}

// New begins a page.
func New(w io.Writer, title string) *Page { return begin(w, title, Policy(false)) }

// NewLive begins a page that may follow the server that it comes from.
func NewLive(w io.Writer, title string) *Page { return begin(w, title, Policy(true)) }

// Policy is the content security policy of pages: their own script and style, and nothing
// from elsewhere. A live page may also ask its server.
func Policy(live bool) string {
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src '" + hash(Style()) + "'; script-src '" + hash(Script()) + "'"
	if live {
		policy += "; connect-src 'self'"
	}
	return policy
}

// Served is a page that may ask the server that it comes from.
func Served(page string) string {
	if strings.Contains(page, Policy(true)) { // the other policy is a part of this one
		return page
	}
	return strings.Replace(page, Policy(false), Policy(true), 1)
}

func begin(w io.Writer, title, policy string) *Page {
	p := &Page{w: bufio.NewWriter(w)}
	p.text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
	p.text(`<meta http-equiv="Content-Security-Policy" content="` + policy + "\">\n")
	p.text("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" + html.EscapeString(page.Printable(title)) + "</title>\n")
	p.text("<style>" + Style() + "</style>\n</head>\n<body>\n<div id=\"page\"></div>\n")
	return p
}

func (p *Page) text(s string) {
	if p.err == nil {
		_, p.err = p.w.WriteString(s)
	}
}

// hash is the hash of a script or a style for the policy of a page.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Add adds a document, which write writes as JSON.
func (p *Page) Add(write func(io.Writer) error) error {
	d := p.Document()
	return errors.Join(write(d), d.Close())
}

// Document begins a document. It must be closed before anything else is added.
func (p *Page) Document() io.WriteCloser {
	p.text(`<script class="document" type="application/octet-stream">`)
	coded := base64.NewEncoder(base64.StdEncoding, p.w)
	return &block{p, gzip.NewWriter(coded), coded}
}

// A block is a document in a page: base64 of gzip.
type block struct {
	page  *Page
	zip   *gzip.Writer
	coded io.WriteCloser
}

func (b *block) Write(data []byte) (int, error) {
	if b.page.err != nil {
		return 0, b.page.err
	}
	var n int
	n, b.page.err = b.zip.Write(data)
	return n, b.page.err
}

func (b *block) Close() error {
	err := errors.Join(b.page.err, b.zip.Close(), b.coded.Close())
	b.page.err = err
	b.page.text("</script>\n")
	return b.page.err
}

// About is what a page says of itself.
type About struct {
	Version string   `json:"version"`
	Command []string `json:"command"` // that made the page
	Left    []Left   `json:"left_out,omitempty"`
	Live    string   `json:"live,omitempty"` // where further accounts come from
}

// Left is a view that a page does not have, and why.
type Left struct {
	View string `json:"view"`
	Why  string `json:"why"`
}

// About adds what the page says of itself.
func (p *Page) About(a About) error {
	return p.Add(func(w io.Writer) error {
		return page.JSON(w, struct {
			Schema string `json:"schema"`
			About
		}{"cyclestack.page/v1", a})
	})
}

// plainText is text as markup, line by line.
func plainText(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = html.EscapeString(page.Printable(line))
	}
	return strings.Join(lines, "\n")
}

// Plain returns the writer of the text for viewers without scripts, such as those of mail.
func (p *Page) Plain() io.Writer { return &p.plain }

// Finish ends the page.
func (p *Page) Finish() error {
	p.text("<pre id=\"plain\">" + plainText(p.plain.String()) + "</pre>\n")
	p.text("<script>" + Script() + "</script>\n</body>\n</html>\n")
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}
