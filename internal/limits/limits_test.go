package limits

import (
	"strings"
	"testing"

	_ "github.com/cyclestack/cyclestack/internal/testlong" // the flag -long
)

func TestParse(t *testing.T) {
	list, err := Parse(" cycles > 3 % , function:a<b>::operator>(x)>1.5%,module:libc.so.6<2%")
	want := []Limit{{Name: "cycles", Share: 0.03}, {Kind: "function", Name: "a<b>::operator>(x)", Share: 0.015}, {Kind: "module", Name: "libc.so.6", Less: true, Share: 0.02}}
	if err != nil || len(list) != len(want) {
		t.Fatalf("%+v, %v", list, err)
	}
	for i := range want {
		if l := list[i]; l != want[i] {
			t.Errorf("got %+v, want %+v", l, want[i])
		}
	}
	for _, text := range []string{"cycles", "cycles>3", "cycles>x%", ">3%", "cycles>3%,", "cycles>3% instructions>1%", "cycles>1.2.3%"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "fail-on") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
