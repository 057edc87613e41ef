package account_test

import (
	"path/filepath"
	"testing"

	"github.com/cyclestack/cyclestack/internal/modeltest"
	"github.com/cyclestack/cyclestack/model"
)

// TestModels runs the .test files: counts and what the embedded models must
// make of them.
func TestModels(t *testing.T) {
	files, err := filepath.Glob("../model/testdata/*.test")
	if err != nil || len(files) == 0 {
		t.Fatalf("no .test files (%v)", err)
	}
	cat, err := model.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { modeltest.Run(t, cat, file) })
	}
}
