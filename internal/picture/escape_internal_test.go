package picture

import (
	"encoding/xml"
	"strings"
	"testing"
)

// TestEscape: whatever a name is, it is bounded text in the picture.
func TestEscape(t *testing.T) {
	for _, name := range []string{`<script>alert(1)</script>`, `</text><svg onload="x">`, "\u202Egnp.exe\u2066", "a\x00b\x1b[31m", "\xff\xfe", "&amp;", strings.Repeat("A", 1<<20), `javascript:x`} {
		got := escape(name)
		var text struct {
			S string `xml:",chardata"`
		}
		if err := xml.Unmarshal([]byte("<t>"+got+"</t>"), &text); err != nil {
			t.Errorf("%.40q is not text: %v", name, err)
		}
		if len(got) > 2000 || strings.ContainsAny(got, "<>\x00\x1b\u202e\u2066") {
			t.Errorf("%.40q becomes %.80q", name, got)
		}
	}
}
