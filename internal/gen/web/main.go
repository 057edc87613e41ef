// Command web makes the script and the style of the page of package web from its
// TypeScript, for go generate:
//
//	go run -tags esbuild ./internal/gen/web internal/web/src internal/web/page
//
// The output is compressed, without a time, so that the same source makes the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
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

// bundle returns a source and what it imports as one minified file. The bundler takes long
// to compile, and only a program with the tag esbuild has it.
var bundle = func(string) ([]byte, error) { return nil, errors.New("needs -tags esbuild") }

// generate bundles main.ts and page.css of a directory into another.
func generate(from, to string) error {
	sum, err := digest(from)
	if err != nil {
		return err
	}
	for _, f := range []struct{ source, output string }{{"main.ts", "page.js.gz"}, {"page.css", "page.css.gz"}} {
		text, err := bundle(filepath.Join(from, f.source))
		if err != nil {
			return err
		}
		packed, err := compress(text, sum)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, f.output), packed, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// digest returns the hash of a directory's files. The output has it as a comment, so that a
// changed source is seen without the bundler.
func digest(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", f.Name(), len(text), text)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

func compress(text []byte, comment string) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w.Comment = comment
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}
