package metric

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cyclestack/cyclestack/internal/sorting"
)

// A Unit is a product of base units with whole powers: cycles/instruction,
// bytes/s, slots. The zero Unit is 1, that of plain numbers and shares.
//
// Base units are only names: "ns" and "s" have nothing in common. But a plural
// is the unit of its singular, so that cycles divided by instructions are
// cycles/instruction.
type Unit struct {
	factors []factor // sorted by base; no power is 0
	any     bool     // not known: fits every other
}

// A factor is one base unit with its power.
type factor struct {
	base  string // singular
	text  string // as it was spelled
	power int
}

// Limits of a unit's text, which may come from a user's file.
const (
	maxUnitLength = 200
	maxPower      = 99
)

// ParseUnit reads a unit: base units or 1, joined by * and /, each with a power
// if need be, as in "cycles/instruction", "1/s" and "m/s^2". A slash concerns
// only the base unit after it.
func ParseUnit(s string) (Unit, error) {
	if len(s) > maxUnitLength {
		return Unit{}, fmt.Errorf("unit: longer than %d bytes", maxUnitLength)
	}
	var u Unit
	for rest, sign := s, 1; ; {
		end := strings.IndexAny(rest, "*/")
		word := rest
		if end >= 0 {
			word = rest[:end]
		}
		f, err := parseFactor(strings.TrimSpace(word))
		if err != nil {
			return Unit{}, fmt.Errorf("unit %q: %w", s, err)
		}
		u = u.times(f, sign)
		if end < 0 {
			return u, u.checkPowers(s)
		}
		sign = 1
		if rest[end] == '/' {
			sign = -1
		}
		rest = rest[end+1:]
	}
}

// checkPowers refuses a unit that would not be read back as it is written.
func (u Unit) checkPowers(src string) error {
	for _, f := range u.factors {
		if max(f.power, -f.power) > maxPower {
			return fmt.Errorf("unit %q: the power of %s is above %d", src, f.text, maxPower)
		}
	}
	return nil
}

// parseFactor reads "1" or a base unit with or without a power; 1 is a unit of
// no factors.
func parseFactor(s string) (Unit, error) {
	if s == "1" {
		return Unit{}, nil
	}
	name, exponent, hasPower := strings.Cut(s, "^")
	power := 1
	if hasPower {
		var err error
		power, err = strconv.Atoi(exponent)
		if err != nil || power == 0 || max(power, -power) > maxPower {
			return Unit{}, fmt.Errorf("the power %q is not a whole number up to %d other than 0", exponent, maxPower)
		}
	}
	for i, r := range name {
		if !unicode.IsLetter(r) && r != '_' && (i == 0 || !unicode.IsDigit(r)) {
			return Unit{}, fmt.Errorf("%q is not the name of a unit", name)
		}
	}
	if name == "" {
		return Unit{}, errors.New("a unit is missing; plain numbers have the unit 1")
	}
	return Unit{factors: []factor{{base: singular(name), text: name, power: power}}}, nil
}

// singular returns the base unit that a name in the plural means. Short names
// (s, ns, bus) and those in -ss are singular already.
func singular(name string) string {
	switch {
	case len(name) <= 3 || strings.HasSuffix(name, "ss") || !strings.HasSuffix(name, "s"):
		return name
	case strings.HasSuffix(name, "ies"):
		return strings.TrimSuffix(name, "ies") + "y"
	case strings.HasSuffix(name, "sses"), strings.HasSuffix(name, "ches"), strings.HasSuffix(name, "shes"), strings.HasSuffix(name, "xes"):
		return strings.TrimSuffix(name, "es")
	}
	return strings.TrimSuffix(name, "s")
}

// times returns u · v^sign.
func (u Unit) times(v Unit, sign int) Unit {
	if u.any || v.any {
		return Unit{any: true}
	}
	factors := slices.Clone(u.factors)
	for _, f := range v.factors {
		f.power *= sign
		i, found := slices.BinarySearchFunc(factors, f, func(a, b factor) int { return strings.Compare(a.base, b.base) })
		if !found {
			factors = sorting.Insert(factors, i, f)
			continue
		}
		if factors[i].power += f.power; factors[i].power == 0 {
			factors = slices.Delete(factors, i, i+1)
		}
	}
	return Unit{factors: factors}
}

// product returns the unit of a product. It is not known if one of them is not.
func (u Unit) product(v Unit) Unit { return u.times(v, 1) }

// quotient returns the unit of a quotient. It is not known if one of them is not.
func (u Unit) quotient(v Unit) Unit { return u.times(v, -1) }

// Known reports whether the unit is known. That of an expression is not, where
// it hangs on a name whose unit nobody said.
func (u Unit) Known() bool { return !u.any }

// Equal reports whether two units are the same. One that is not known is the
// same only as another such.
func (u Unit) Equal(v Unit) bool {
	return u.any == v.any && slices.EqualFunc(u.factors, v.factors, func(a, b factor) bool {
		return a.base == b.base && a.power == b.power
	})
}

// String returns the unit as ParseUnit reads it, "1" for that of plain numbers;
// and "?" for one that is not known.
func (u Unit) String() string {
	if u.any {
		return "?"
	}
	var above, below strings.Builder
	for _, f := range u.factors {
		switch {
		case f.power > 0 && above.Len() > 0:
			above.WriteString("*" + f.text)
		case f.power > 0:
			above.WriteString(f.text)
		default:
			below.WriteString("/" + f.base)
		}
		b := &above
		if f.power < 0 {
			b = &below
		}
		if n := max(f.power, -f.power); n > 1 {
			fmt.Fprintf(b, "^%d", n)
		}
	}
	if above.Len() == 0 {
		return "1" + below.String()
	}
	return above.String() + below.String()
}
