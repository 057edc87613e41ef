package model

import (
	"fmt"
	"strings"
	"testing"
)

// TestMatchPlain compares the matching of identifications with that of regular
// expressions: of the catalogue's patterns, and some that are worse.
func TestMatchPlain(t *testing.T) {
	lib, err := embeddedLibrary()
	if err != nil {
		t.Fatal(err)
	}
	patterns := []string{"", "a", "(a|b)", "((a|b)c|d)-[0-9]", "[a-c-]", "[A-F][0-9A-F]", "a(|b)c", "[-a]", "(a|b", "a)", "a|b", "[a", "a*", "[]a]", "[(|)]", "(a[)]b)", "é"}
	for i := range lib.cpus {
		patterns = append(patterns, lib.cpus[i].IDs...)
	}
	texts := []string{"", "a", "b", "ab", "ac", "abc", "Ac-3", "d-7", "-", "c-", "f0", "5B", ":", "_", "a:3"}
	for family := range 27 {
		for model := range 256 {
			for _, vendor := range []string{"GenuineIntel", "authenticamd"} {
				texts = append(texts, fmt.Sprintf("%s-%d-%X", vendor, family, model), fmt.Sprintf("%s-%d-%X-%x", vendor, family, model, model&15))
			}
		}
	}
	if isPlain(strings.Repeat("(a|a)", 30)) {
		t.Error("what is matched by trying out all choices has 2^30 of them")
	}
	plain := 0
	for _, pattern := range patterns {
		if !isPlain(pattern) {
			continue
		}
		plain++
		re, err := compileID(pattern)
		if err != nil {
			t.Errorf("%q is plain, and wrong: %v", pattern, err)
			continue
		}
		for _, text := range append(texts, strings.Trim(pattern, "()[]")) {
			if got, want := matchPlain(pattern, text), re.MatchString(text); got != want {
				t.Errorf("matchPlain(%q, %q) = %v, want %v", pattern, text, got, want)
			}
		}
	}
	if plain < 50 {
		t.Errorf("only %d patterns of %d are plain", plain, len(patterns))
	}
}
