package disasm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// x86asm writes some operands in ways that mislead. tidy corrects them:
//
//   - displacements of 32 bits below zero, as 0xfffffff8(%rbp);
//   - operands of vector instructions relative to the instruction, without %rip;
//   - segments of vector instructions that have no such prefix;
//   - %riz, which stands for no index, where GNU's tools write none;
//   - the address 0, which it omits, and other addresses without registers
//     that are extended with their sign.
func (d x86) tidy(text string, code []byte) string {
	text = strings.ReplaceAll(text, " {", "{")
	x := decodeX86(code, d.bits)
	if d.bits == 64 {
		text = d.negative(text)
	}
	if d.syntax == ATT {
		text = addressZero().ReplaceAllString(noIndex.Replace(text), "${1}0x0${2}")
		if d.bits == 64 && x.hasModrm && x.modrm>>6 == 0 {
			text = absolute().ReplaceAllString(text, "${1}0xffffffff${2}")
		}
	}
	if x.enc == legacy {
		return text
	}
	if x.segment == 0 {
		text = noSegment.Replace(text)
	}
	if x.hasRef && !strings.Contains(text, "rip") {
		text = d.relative(text, int64(x.ref))
	}
	return text
}

var (
	noIndex   = strings.NewReplacer(",%riz)", ")", ",%eiz)", ")")
	noSegment = strings.NewReplacer("%gs:", "", "%fs:", "", "%es:", "", "%cs:", "", "%ss:", "", "%ds:", "",
		"gs:[", "[", "fs:[", "[", "es:[", "[", "cs:[", "[", "ss:[", "[", "ds:[", "[")

	// An address without registers: none, or one of 32 bits that is extended.
	addressZero = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([ ,:])(,|$)`) })
	absolute    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`([ ,:])0x([89a-f][0-9a-f]{7}(?:,|$))`) })

	// Displacements of 32 bits with the highest one set, in both syntaxes.
	negativeATT   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`0x[89a-f][0-9a-f]{7}\(`) })
	negativeIntel = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\+0x[89a-f][0-9a-f]{7}\]`) })
)

// negative writes displacements that are extended with their sign as such.
func (d x86) negative(text string) string {
	if d.syntax == Intel {
		return negativeIntel().ReplaceAllStringFunc(text, func(s string) string {
			return extended(s[3:len(s)-1]) + "]"
		})
	}
	return negativeATT().ReplaceAllStringFunc(text, func(s string) string {
		return extended(s[2:len(s)-1]) + "("
	})
}

// extended writes eight hexadecimal digits as a signed number.
func extended(digits string) string {
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil {
		return "0x" + digits
	}
	return fmt.Sprintf("%#x", int32(v))
}

// relative writes the displacement of an operand as one of %rip.
func (d x86) relative(text string, ref int64) string {
	number := fmt.Sprintf("%#x", ref)
	if d.syntax == Intel {
		sign := "+"
		if ref < 0 {
			sign = ""
		}
		return strings.Replace(text, "["+number+"]", "[rip"+sign+number+"]", 1)
	}
	for _, before := range []string{" ", ","} {
		head, tail, ok := strings.Cut(text, before+number)
		if ok && (tail == "" || tail[0] == ',' || tail[0] == '{') {
			return head + before + number + "(%rip)" + tail
		}
	}
	return text
}
