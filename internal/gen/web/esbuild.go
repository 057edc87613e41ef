//go:build esbuild

package main

import (
	"errors"
	"fmt"

	"github.com/evanw/esbuild/pkg/api"
)

// init sets the bundler. Its files are for browsers from 2023 on.
func init() {
	bundle = func(source string) ([]byte, error) {
		result := api.Build(api.BuildOptions{
			EntryPoints: []string{source}, Bundle: true, Format: api.FormatIIFE, Target: api.ES2022, Charset: api.CharsetASCII,
			MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
		})
		var all error
		for _, m := range append(result.Errors, result.Warnings...) {
			at := ""
			if m.Location != nil {
				at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
			}
			all = errors.Join(all, errors.New(at+m.Text))
		}
		if all != nil {
			return nil, all
		}
		return result.OutputFiles[0].Contents, nil
	}
}
