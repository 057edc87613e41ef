package model

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cyclestack/cyclestack/internal/sorting"
	"github.com/cyclestack/cyclestack/internal/spelling"
)

// cpusFile is the list of processors in a library, or in a user's folder.
const cpusFile = "cpus.toml"

// readCPUs reads a list of processors, which messages call label. With [Errors] it returns
// those that could be read.
func readCPUs(fsys fs.FS, name, label string) ([]CPU, error) {
	data, err := readFile(fsys, name)
	if err != nil {
		return nil, err
	}
	cpus := make([]CPU, 0, bytes.Count(data, []byte("[[cpu]]"))) // about as many
	err = decode(data, label, schema{
		table: func(list string, at position) any {
			if list != "cpu" {
				return nil
			}
			cpus = append(cpus, CPU{at: place{file: label, line: at.line}})
			return &cpus[len(cpus)-1]
		},
	})
	if err != nil && notTOML(err) {
		return nil, err
	}
	faults := asFaults(err)
	owners := make(map[string]*CPU, 2*len(cpus))
	for i := range cpus {
		for _, problem := range cpus[i].check(owners) {
			faults = append(faults, cpus[i].at.errorf("processor %s: %s", spelling.Clip(cpus[i].Name), problem))
		}
	}
	if len(faults) > 0 {
		faults.sort()
		return cpus, faults
	}
	return cpus, nil
}

// check returns what is wrong with a processor. owners are the processors
// before it, by their names: a name means one, or the core types of one.
func (p *CPU) check(owners map[string]*CPU) (problems []string) {
	fault := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if _, coreType, hybrid := strings.Cut(p.Name, ":"); hybrid != (p.CoreType != "") || coreType != p.CoreType {
		fault("the core type of a hybrid processor, and of no other, follows its name and a colon")
	}
	if o := owners[p.Name]; o != nil {
		fault("there is one already")
	}
	owners[p.Name] = p
	for _, name := range append([]string{p.base()}, p.Aliases...) {
		if !isModelName(name) {
			fault("the name %q is not made of lower-case letters, digits and hyphens", spelling.Clip(name))
		}
		if o := owners[name]; o != nil && o != p && (o.base() != p.base() || o.CoreType == "") {
			fault("%q is a name of %s already", name, o.Name)
		}
		owners[name] = p
	}
	if !slices.Contains(layouts, p.Layout) {
		fault("layout %q is not one of %s", spelling.Clip(p.Layout), strings.Join(layouts, ", "))
	}
	for _, pattern := range p.PMUs {
		if _, err := path.Match(pattern, ""); err != nil {
			fault("pmus: %q: %v", spelling.Clip(pattern), err)
		}
	}
	if p.Width < 0 || p.Width > 64 {
		fault("width = %d", p.Width)
	}
	if p.Threads < 1 || p.Threads > 64 {
		fault("threads = %d: at least one", p.Threads)
	}
	if p.Caches != "" && !cachesPattern().MatchString(p.Caches) {
		fault("caches: %q is not SIZE,WAYS,LINE/…, such as 32K,8,64/32K,8,64/1M,16,64/8M,16,64", spelling.Clip(p.Caches))
	}
	for name, v := range p.Params {
		if !isFormulaName(name) || math.IsNaN(v) || math.IsInf(v, 0) {
			fault("params: %q = %v", spelling.Clip(name), v)
		}
	}
	return problems
}

// cachesPattern is what CPU.Caches looks like.
var cachesPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d+[KM]?,\d+,\d+(/\d+[KM]?,\d+,\d+){2,3}$`) })

// base returns the name of a processor without its core type.
func (p *CPU) base() string {
	base, _, _ := strings.Cut(p.Name, ":")
	return base
}

// checkIDs compiles all identification patterns, which otherwise are compiled
// as they are needed.
func (lib *library) checkIDs() error {
	for i := range lib.cpus {
		p := &lib.cpus[i]
		for _, id := range p.IDs {
			_, err := compileID(id)
			if p.Layout == layoutArm && err == nil {
				_, err = parseHex(id)
			}
			if err != nil {
				return p.at.errorf("processor %s: ids: %q: %v", p.Name, spelling.Clip(id), err)
			}
		}
	}
	return nil
}

// compileID compiles an identification pattern.
func compileID(pattern string) (*regexp.Regexp, error) {
	if len(pattern) > 200 {
		return nil, errors.New("a pattern of more than 200 bytes")
	}
	return regexp.Compile(`(?i)^(?:` + pattern + `)$`)
}

// named returns the processor of a name exactly as the list has it, nil if
// there is none.
func (lib *library) named(name string) *CPU {
	for i := range lib.cpus {
		if lib.cpus[i].Name == name {
			return &lib.cpus[i]
		}
	}
	return nil
}

// CPU returns a processor by its name, an alias or an identification. Identifications are
// written as by Linux's perf and the vendors' map files:
//
//	skylakex   skx   alderlake:core
//	GenuineIntel-6-55-4   AuthenticAMD-25-11   GenuineIntel-6-97-2:core
//	0x00000000410fd0c0   410fd0c0              (Arm, MIDR_EL1)
//	0x004d0200                                 (POWER, PVR)
//	0x489-0x8000000000000007-0x0               (RISC-V: vendor, architecture, implementation)
//
// Case does not matter. The core type of a hybrid processor follows a colon;
// without one the error is a *[CoreTypeError], and for a processor that is not
// known an *[UnknownCPUError].
func (c *Catalogue) CPU(query string) (*CPU, error) { return c.lib.cpu(query) }

func (lib *library) cpu(query string) (*CPU, error) {
	query = strings.TrimSpace(query)
	spelt, coreType, typed := strings.Cut(query, ":")
	found := lib.byName(strings.ToLower(spelt))
	if len(found) == 0 {
		found = lib.byID(strings.ToLower(spelt))
	}
	if len(found) == 0 {
		return nil, lib.unknownCPU(query)
	}
	if !typed && found[0].CoreType == "" {
		return found[0], nil
	}
	var choices []string
	for _, p := range found {
		if typed && p.CoreType == strings.ToLower(coreType) {
			return p, nil
		}
		choices = append(choices, spelt+":"+p.CoreType)
	}
	if found[0].CoreType == "" {
		return nil, &UnknownCPUError{Query: query, Hint: "it has one type of core", Near: []string{spelt}}
	}
	if !typed && len(found) == 1 {
		return found[0], nil // an alias of one core type
	}
	return nil, &CoreTypeError{Query: query, Type: coreType, Choices: choices}
}

// byName returns the processors of a name or an alias: several if they are the
// core types of a hybrid.
func (lib *library) byName(name string) []*CPU {
	var found []*CPU
	for i := range lib.cpus {
		p := &lib.cpus[i]
		if p.base() == name || slices.Contains(p.Aliases, name) {
			found = append(found, p)
		}
	}
	return found
}

// byID returns the first processor that answers to an identification, with
// the other core types of it.
func (lib *library) byID(id string) []*CPU {
	var found []*CPU
	for i := range lib.cpus {
		p := &lib.cpus[i]
		if (len(found) == 0 || found[0].base() == p.base()) && p.answersTo(id) {
			found = append(found, p)
		}
	}
	return found
}

// answersTo reports whether one of the patterns of p matches an identification.
func (p *CPU) answersTo(id string) bool {
	return slices.ContainsFunc(p.IDs, func(pattern string) bool { return matchID(p.Layout, pattern, id) })
}

// matchID reports whether an identification pattern matches an identification of the
// processor. Patterns are those of Linux's and Intel's map files, and of strcmp_cpuid_str
// in a formula.
func matchID(layout, pattern, id string) bool {
	switch layout {
	case layoutIntel, layoutAMD:
		return matchX86(pattern, id)
	case layoutArm:
		return matchMIDR(pattern, id)
	case layoutPower:
		v, err := parseHex(id)
		return err == nil && v <= math.MaxUint32 && matchWhole(pattern, fmt.Sprintf("0x%08x", v))
	}
	return strings.Count(id, "-") == 2 && matchWhole(pattern, id)
}

// matchWhole reports whether a pattern matches the whole of s.
func matchWhole(pattern, s string) bool {
	if !hasPrefixFold(s, literalPrefix(pattern)) {
		return false // without the cost of compiling it
	}
	if isPlain(pattern) {
		return matchPlain(pattern, s)
	}
	re, err := compileID(pattern)
	return err == nil && re.MatchString(s)
}

// isPlain reports whether a pattern has nothing but letters, classes and a few choices in
// brackets, as nearly all have.
func isPlain(pattern string) bool {
	const most = 4 // choices: each may double what matchPlain has to try
	if strings.Count(pattern, "(") > most {
		return false
	}
	depth, class := 0, false
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c >= 0x80 || strings.IndexByte(`\.+*?{}^$`, c) >= 0:
			return false
		case class && strings.IndexByte("[(|)", c) >= 0 || strings.HasPrefix(pattern[i:], "[]"):
			return false
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if depth < 0 || depth == 0 && pattern[i] == '|' && !class {
			return false
		}
	}
	return depth == 0 && !class
}

// matchPlain is matchWhole for a pattern that isPlain: compiling a regular expression
// costs more than all else that is done to find a processor.
func matchPlain(pattern, s string) bool {
	for pattern != "" {
		switch c := pattern[0]; {
		case c == '(':
			choices, rest := choices(pattern)
			return slices.ContainsFunc(choices, func(choice string) bool { return matchPlain(choice+rest, s) })
		case s == "":
			return false
		case c == '[':
			end := strings.IndexByte(pattern, ']')
			if !inClass(pattern[1:end], s[0]) {
				return false
			}
			pattern = pattern[end:]
		case lower(c) != lower(s[0]):
			return false
		}
		pattern, s = pattern[1:], s[1:]
	}
	return s == ""
}

// choices splits a pattern that begins with a bracket: the choices in the brackets, and
// the rest of the pattern.
func choices(pattern string) (list []string, rest string) {
	depth, begin := 0, 1
	for i := range len(pattern) {
		switch c := pattern[i]; {
		case c == '(':
			depth++
		case c == ')' && depth == 1:
			return append(list, pattern[begin:i]), pattern[i+1:]
		case c == ')':
			depth--
		case c == '|' && depth == 1:
			list, begin = append(list, pattern[begin:i]), i+1
		}
	}
	return nil, ""
}

// inClass reports whether a class such as 56A-F has a letter.
func inClass(class string, c byte) bool {
	for class != "" {
		low, high := class[0], class[0]
		if class = class[1:]; len(class) > 1 && class[0] == '-' {
			high, class = class[1], class[2:]
		}
		if low <= lower(c) && lower(c) <= high || low <= upper(c) && upper(c) <= high {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}

// literalPrefix returns a text that begins everything the pattern matches.
func literalPrefix(pattern string) string {
	end := strings.IndexAny(pattern, `\.+*?()|[]{}^$`)
	switch {
	case end < 0:
		return pattern
	case hasChoice(pattern):
		return ""
	case end > 0 && strings.IndexByte("*?{", pattern[end]) >= 0:
		end-- // what is before it may be absent
	}
	return pattern[:end]
}

// hasChoice reports whether a pattern is several, with | between them.
func hasChoice(pattern string) bool {
	depth := 0
	for _, r := range pattern {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == '|' && depth == 0:
			return true
		}
	}
	return false
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// matchX86 matches "VENDOR-family-MODEL[-stepping]", family in decimal and the
// others in hexadecimal. A pattern without a stepping is for every stepping.
// See strcmp_cpuid_str in Linux's tools/perf/arch/x86/util/header.c.
func matchX86(pattern, id string) bool {
	parts := strings.Split(id, "-")
	if len(parts) != 3 && len(parts) != 4 {
		return false
	}
	if len(parts) == 4 && !hasStepping(pattern) {
		id = strings.Join(parts[:3], "-")
	}
	return matchWhole(pattern, id)
}

// hasStepping reports whether a pattern names the stepping: whether it has
// three hyphens outside of brackets.
func hasStepping(pattern string) bool {
	hyphens, inside := 0, false
	for _, r := range pattern {
		switch {
		case r == '[':
			inside = true
		case r == ']':
			inside = false
		case r == '-' && !inside:
			hyphens++
		}
	}
	return hyphens == 3
}

// Fields of Arm's MIDR_EL1.
const (
	midrVariant  = 0xf << 20
	midrRevision = 0xf
)

// matchMIDR matches a MIDR. A pattern whose variant and revision are 0 is for all. Any
// other is for that revision and later ones. See strcmp_cpuid_str in Linux's
// tools/perf/arch/arm64/util/header.c.
func matchMIDR(pattern, id string) bool {
	want, err := parseHex(pattern)
	if err != nil {
		return false
	}
	have, err := parseHex(id)
	if err != nil || (want^have)&^(midrVariant|midrRevision) != 0 {
		return false
	}
	return cmp.Or(cmp.Compare(have&midrVariant, want&midrVariant), cmp.Compare(have&midrRevision, want&midrRevision)) >= 0
}

// parseHex parses a register's value as it is printed: with or without 0x, and
// with leading zeros.
func parseHex(s string) (uint64, error) {
	s = strings.TrimPrefix(strings.ToLower(s), "0x")
	if len(s) < 6 {
		return 0, errors.New("too short for the value of a register")
	}
	return strconv.ParseUint(s, 16, 64)
}

// unknownCPU returns the error for a name or an identification of no processor, with what
// may have been meant.
func (lib *library) unknownCPU(query string) error {
	e := &UnknownCPUError{Query: query}
	base, coreType, typed := strings.Cut(strings.ToLower(query), ":")
	if strings.Count(base, "-") == 2 && !looksLikeName(base) {
		for i := range lib.cpus { // the model is known, but only with its stepping
			p := &lib.cpus[i]
			if slices.ContainsFunc(p.IDs, func(id string) bool { return hasStepping(id) && hasPrefixFold(id, base+"-") }) {
				e.Near = append(e.Near, p.Name)
				e.Hint = "its stepping decides, as in " + query + "-4"
			}
		}
	}
	if e.Hint == "" && !looksLikeName(base) {
		e.Hint = "no processor of the catalogue has this identification; generic stands for any, with the kernel's generic events"
		return e
	}
	if len(e.Near) == 0 {
		e.Near = lib.near(base)
	}
	if typed {
		for i, name := range e.Near {
			if full := name + ":" + coreType; lib.named(full) != nil {
				e.Near[i] = full
			}
		}
	}
	return e
}

// looksLikeName reports whether a query is rather a name than an
// identification.
func looksLikeName(s string) bool {
	return !looksRaw(s) && !looksRaw("0x"+s) && !strings.HasPrefix(s, "0x") &&
		!strings.HasPrefix(s, "genuineintel-") && !strings.HasPrefix(s, "authenticamd-")
}

// near returns the names that are spelt most like s, three at most.
func (lib *library) near(s string) []string {
	best := map[string]int{}
	for i := range lib.cpus {
		p := &lib.cpus[i]
		for _, name := range append([]string{p.base()}, p.Aliases...) {
			d := spelling.Distance(s, name)
			if old, ok := best[p.base()]; d <= 1+len(name)/4 && (!ok || d < old) {
				best[p.base()] = d
			}
		}
	}
	names := slices.Collect(maps.Keys(best))
	sorting.Sort(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(best[x], best[y]), strings.Compare(x, y))
	})
	return names[:min(len(names), 3)]
}
