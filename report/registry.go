package report

import (
	"embed"
	"fmt"
	"io"
	"path"
	"reflect"
	"strings"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/page"
)

// A format is how documents of one type are written.
type format struct {
	name  string
	write func(w io.Writer, document any, o Options) error
}

// formats has the writers of all documents, by the document's type.
var formats = map[reflect.Type][]format{}

// Register adds a format of the documents of type D. It is for init functions.
func Register[D any](name string, write func(w io.Writer, document D, o Options) error) {
	of := reflect.TypeFor[D]()
	formats[of] = append(formats[of], format{name, func(w io.Writer, document any, o Options) error { return write(w, document.(D), o) }})
}

// Formats returns the names of the formats of documents of type D, the one for people
// first.
func Formats[D any]() []string {
	var names []string
	for _, f := range formats[reflect.TypeFor[D]()] {
		names = append(names, f.name)
	}
	return names
}

// schemas has the JSON Schema of other packages' documents, by the document's type.
var schemas = map[reflect.Type][]byte{}

// RegisterSchema sets the JSON Schema of the json format of documents of type D. It is for
// init functions.
func RegisterSchema[D any](schema []byte) { schemas[reflect.TypeFor[D]()] = schema }

// schemaFiles are the schemas of the package's own documents. They are part of a program only if
// it calls [Schema].
//
//go:embed schema/*.v1.json
var schemaFiles embed.FS

// Schema returns the JSON Schema of the json format of documents of type D, nil if it has
// none.
func Schema[D any]() []byte {
	name := ""
	switch any(*new(D)).(type) {
	case Accounts:
		name = "account"
	case Comparison, PlaceComparison:
		name = "diff"
	case Plan:
		name = "plan"
	case Methods, Trees:
		name = "models"
	case Events:
		name = "events"
	case Findings:
		name = "lint"
	default:
		return schemas[reflect.TypeFor[D]()]
	}
	text, err := schemaFiles.ReadFile("schema/" + name + ".v1.json")
	if err != nil {
		panic(err) // the file is part of the package
	}
	return text
}

// Write writes a document in a format. Documents are [Accounts], [Comparison],
// [PlaceComparison], [Plan], [Methods], [Trees], [Events], [Findings], [Explanation],
// and those that other packages registered.
func Write(w io.Writer, name string, document any, o Options) error {
	o, err := o.checked()
	if err != nil {
		return err
	}
	var names []string
	for _, f := range formats[reflect.TypeOf(document)] {
		if f.name == name {
			return f.write(w, document, o)
		}
		names = append(names, f.name)
	}
	return fmt.Errorf("no format %q; there are %s", name, strings.Join(names, ", "))
}

// checked returns the options with the usual width, or an error if the pattern is none.
func (o Options) checked() (Options, error) {
	if o.Width == 0 {
		o.Width = page.UsualWidth
	}
	if _, err := path.Match(o.Nodes, ""); err != nil {
		return o, fmt.Errorf("%q is not a pattern: %v", o.Nodes, err)
	}
	return o, nil
}

// asJSON returns a writer of the value that document makes of a document of type D.
func asJSON[D any](document func(D, Options) any) func(io.Writer, D, Options) error {
	return func(w io.Writer, d D, o Options) error { return page.JSON(w, document(d, o)) }
}

// Accounts is a document of accounts that are all at hand. For accounts that come one
// by one there is [New].
type Accounts struct {
	Header Header
	List   []*account.Account
}

// A Writer writes accounts in one format: Begin once, Account for each, End
// once. The account may be reused by the caller after Account returns.
type Writer interface {
	Begin(Header) error
	Account(*account.Account) error
	End() error
}

// New returns a writer of accounts in a format of [Accounts].
func New(name string, w io.Writer, o Options) (Writer, error) {
	o, err := o.checked()
	if err != nil {
		return nil, err
	}
	for _, f := range accountFormats {
		if f.name == name {
			return f.writer(w, o), nil
		}
	}
	return nil, fmt.Errorf("no format %q; there are %s", name, strings.Join(Formats[Accounts](), ", "))
}

// accountFormats are the formats of accounts.
var accountFormats = []accountFormat{
	{"tree", newText},
	{"json", func(w io.Writer, o Options) Writer {
		if o.stream() {
			return &streamWriter{w: w, o: o}
		}
		return &jsonWriter{w: w, o: o, first: true}
	}},
	{"csv", func(w io.Writer, o Options) Writer {
		if o.stream() {
			return &streamCSV{w: w, o: o}
		}
		return &csvWriter{w: w, o: o}
	}},
}

// RegisterWriter adds a format of [Accounts], which is written account by account. It is
// for init functions.
func RegisterWriter(name string, writer func(io.Writer, Options) Writer) {
	accountFormats = append(accountFormats, accountFormat{name, writer})
	Register(name, func(w io.Writer, d Accounts, o Options) error { return d.all(writer(w, o)) })
}

// An accountFormat is how accounts are written.
type accountFormat struct {
	name   string
	writer func(io.Writer, Options) Writer
}

// newText returns the writer of a layout.
func newText(w io.Writer, o Options) Writer {
	switch o.Layout {
	case LayoutRows:
		return newRows(w, o)
	case LayoutParts:
		return newProfile(w, o)
	case LayoutColumns:
		return &columnWriter{tree: *newTree(w, o)}
	case LayoutChecks:
		return &auditWriter{*newTree(w, o)}
	}
	return newTree(w, o)
}

// all writes accounts with a writer.
func (d Accounts) all(to Writer) error {
	if err := to.Begin(d.Header); err != nil {
		return err
	}
	for _, a := range d.List {
		if err := to.Account(a); err != nil {
			return err
		}
	}
	return to.End()
}

func init() {
	for _, f := range accountFormats {
		Register(f.name, func(w io.Writer, d Accounts, o Options) error { return d.all(f.writer(w, o)) })
	}
	for _, name := range []string{"tree", "markdown", "json"} {
		Register(name, func(w io.Writer, d Comparison, o Options) error { return newNodeDiff(w, d, o).print(name) })
		Register(name, func(w io.Writer, d PlaceComparison, o Options) error { return newPlacesDiff(w, d, o).print(name) })
	}
	Register("text", writePlan)
	Register("json", asJSON(planDocument))
	Register("perf", writePlanCommands)
	Register("text", writeMethods)
	Register("json", asJSON(methodsDocument))
	Register("text", writeTrees)
	Register("json", asJSON(treesDocument))
	Register("text", writeEvents)
	Register("json", asJSON(eventsDocument))
	Register("text", writeFindings)
	Register("json", asJSON(findingsDocument))
	Register("text", writeExplanation)
	Register("json", asJSON(explanationDocument))
}
