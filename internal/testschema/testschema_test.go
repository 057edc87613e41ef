package testschema_test

import (
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
	"github.com/cyclestack/cyclestack/internal/testschema"
)

func TestValidate(t *testing.T) {
	schema := []byte(`{"type":"object","required":["n"],"additionalProperties":false,"properties":{"n":{"type":"integer"}}}`)
	for document, want := range map[string]bool{`{"n":1}`: true, `{}`: false, `{"n":"1"}`: false, `{"n":1,"m":1}`: false} {
		if err := testschema.Validate(t, schema, document); (err == nil) != want {
			t.Errorf("%s: %v", document, err)
		}
	}
}
