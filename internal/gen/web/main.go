// Command web makes the script and the style of the page of package web from its
// TypeScript, for go generate:
//
//	go run ./internal/gen/web internal/web/src internal/web/page
//
// The output is compressed, without a time, so that the same source makes the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("web: ")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: web SOURCE OUTPUT")
	}
	if err := generate(flag.Arg(0), flag.Arg(1)); err != nil {
		log.Fatal(err)
	}
}

// generate bundles main.ts and page.css of a directory into another.
func generate(from, to string) error {
	for _, f := range []struct{ source, output string }{{"main.ts", "page.js.gz"}, {"page.css", "page.css.gz"}} {
		text, err := bundle(filepath.Join(from, f.source))
		if err != nil {
			return err
		}
		packed, err := compress(text)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, f.output), packed, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// bundle returns a source and what it imports as one minified file for browsers from
// 2023 on.
func bundle(source string) ([]byte, error) {
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

func compress(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}
