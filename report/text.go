package report

import (
	"github.com/cyclestack/cyclestack/internal/page"
)

// Styles and layout of pages, by shorter names.
type style = page.Style

const (
	plain  = page.Plain
	bold   = page.Bold
	faint  = page.Faint
	dim    = page.Dim
	hot    = page.Hot
	indent = page.Indent
	gap    = page.Gap
)
