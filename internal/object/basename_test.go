package object_test

import (
	"testing"

	"github.com/cyclestack/cyclestack/internal/object"
)

func TestBaseName(t *testing.T) {
	for name, want := range map[string]string{
		"hash":                    "hash",
		"f.part.0":                "f",
		"f.part.0.cold":           "f",
		"f.constprop.0.isra.3":    "f",
		"f.cold":                  "f",
		"f.llvm.1234567":          "f",
		"f.lto_priv.0.lto_priv.1": "f",
		"f.12":                    "f",
		"foo::bar() [clone .constprop.0] [clone .isra.3]": "foo::bar()",
		"core::fmt::write::h0123456789abcdef":             "core::fmt::write",
		"core::fmt::write::hello":                         "core::fmt::write::hello",
		"mycrate[1234abcd5678ef90]::foo":                  "mycrate::foo",
		"mycrate::foo::{closure#3}":                       "mycrate::foo::{closure}",
		"foo()::{lambda()#2}::operator()":                 "foo()::{lambda()}::operator()",
		"main.main.func1":                                 "main.main.func",
		"main.main.func1.2":                               "main.main.func",
		"main.(*T).Run.func2.gowrap1":                     "main.(*T).Run.func.gowrap",
		"main.walk-range1":                                "main.walk-range",
		"gopkg.in/yaml.v3.yaml_parser_parse":              "gopkg.in/yaml.v3.yaml_parser_parse",
		"main.f[go.shape.int_0]":                          "main.f[go.shape.int_0]",
		"fib'2":                                           "fib",
		"memcpy@@GLIBC_2.14":                              "memcpy",
		"memcpy@plt":                                      "memcpy@plt",
		"[unknown]":                                       "[unknown]",
		"":                                                "",
	} {
		if got := object.BaseName(name); got != want {
			t.Errorf("BaseName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestBaseModule(t *testing.T) {
	for name, want := range map[string]string{
		"/usr/lib/libc.so.6":   "libc.so",
		"libc-2.31.so":         "libc.so",
		"libm.so.6.1.2":        "libm.so",
		"app":                  "app",
		"app (deleted)":        "app",
		"perf-1234.map":        "perf.map",
		"jitted-12-3.so":       "jitted.so",
		"[kernel.kallsyms]":    "[kernel.kallsyms]",
		"[vdso]":               "[vdso]",
		"ld-linux-x86-64.so.2": "ld-linux-x86-64.so",
		"":                     "",
	} {
		if got := object.BaseModule(name); got != want {
			t.Errorf("BaseModule(%q) = %q, want %q", name, got, want)
		}
	}
}
