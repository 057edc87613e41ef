package report

import (
	"strings"
	"testing"

	"github.com/cyclestack/cyclestack/account"
	"github.com/cyclestack/cyclestack/internal/page"
)

// TestRemedy writes what helps the hottest place, if no node is a bottleneck.
func TestRemedy(t *testing.T) {
	hot := func(share float64) *account.Account {
		return &account.Account{Hotspots: &account.Hotspots{Running: 1, Places: []account.Hot{
			{Function: "cold", Share: 0.5}, {Function: "dot", Share: share, Cause: &account.Cause{Kind: "core", Text: "a chain", Try: "break the chain"}}}}}
	}
	for _, tt := range []struct {
		a    *account.Account
		want string
	}{
		{hot(0.4), "  try     in dot: break the chain\n"},
		{hot(0.01), ""},
		{&account.Account{Hotspots: hot(0.4).Hotspots, Bottleneck: []int{0}}, ""},
		{&account.Account{}, ""},
	} {
		var out strings.Builder
		w := &tree{Page: page.New(&out, 80, false)}
		wrote := w.remedy(tt.a)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != tt.want || wrote != (tt.want != "") {
			t.Errorf("got %q, %t, want %q", out.String(), wrote, tt.want)
		}
	}
}
