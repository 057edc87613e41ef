// Package testschema holds the JSON that tests print to its schema.
package testschema

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cyclestack/cyclestack/internal/testshared"
)

// Rendered returns the schema of a document of package render, by its file's name.
func Rendered(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testshared.Repository, "internal", "render", "schema", name+".v1.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Validate says what of a document is not as its schema says; nil if all is. It ends
// the test if either of them is no JSON.
func Validate(t testing.TB, schema []byte, document string) error {
	t.Helper()
	s, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	const name = "schema.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, s); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return compiled.Validate(doc)
}
