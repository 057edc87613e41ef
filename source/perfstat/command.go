package perfstat

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxCommand bounds a command line that goes on over several lines.
const maxCommand = 256 << 10

// A command is what a line such as
//
//	$ perf stat -a -I 1000 -e '{cycles,instructions},{branches,branch-misses}' -- ./app
//
// says about the counts that follow.
type command struct {
	events  []request
	groups  int    // how many braces -e has
	program string // what was run, "" if nothing
	repeats int    // -r; 0 if not given
}

// A request is one event as the command line asks for it.
type request struct {
	spec  string
	group int // the braces it stands in, from 1; 0: none
}

// commandStart returns the index in a line behind "perf stat", -1 if the line
// is not a command line: before the program's name there may stand a prompt,
// assignments, and programs that run another.
func commandStart(line []byte) int {
	for from := 0; ; {
		i := bytes.Index(line[from:], []byte("perf stat"))
		if i < 0 {
			return -1
		}
		i += from
		end := i + len("perf stat")
		if (end == len(line) || isBlank(line[end])) && isLauncher(line[:i]) {
			return end
		}
		from = end
	}
}

// isLauncher reports whether what stands before "perf stat" can stand before a
// command: a prompt, then assignments, and programs that run another.
func isLauncher(before []byte) bool {
	if n := len(before); n > 0 && before[n-1] == '/' {
		before = before[:bytes.LastIndexAny(before, " \t")+1] // the path to perf
	}
	words := bytes.Fields(before)
	for i := len(words) - 1; i >= 0; i-- {
		w := words[i]
		if bytes.HasSuffix(w, []byte("$")) || bytes.HasSuffix(w, []byte("#")) ||
			bytes.HasSuffix(w, []byte("%")) || bytes.HasSuffix(w, []byte(">")) {
			const most = 5 // words of a prompt; more are a sentence
			return i < most
		}
		if !launchers()[string(w)] && bytes.IndexByte(w, '=') <= 0 && w[0] != '-' && !isDigit(w[0]) {
			return false
		}
	}
	return true
}

var launchers = words("sudo", "doas", "time", "nice", "taskset", "numactl", "chrt", "env", "exec", "nohup",
	"$sudo", "*", "//", "|", "+")

// continuesCommand reports whether a command line goes on in the next line:
// after a backslash, a comma or an open quote, or with an option.
func continuesCommand(text, next []byte) bool {
	text = trimBlanks(text)
	if len(text) == 0 || len(text) > maxCommand {
		return false
	}
	next = skipBlanks(next)
	if len(next) == 0 || isDigit(next[0]) || next[0] == '<' || bytes.Contains(next, header) {
		return false
	}
	if last := text[len(text)-1]; last == '\\' || last == ',' || bytes.Count(text, []byte("'"))%2 == 1 {
		return true
	}
	return len(next) > 2 && next[0] == '-' && (isLetter(next[1]) || next[1] == '-' && isLetter(next[2]))
}

// withArgument are perf stat's options that take an argument.
var withArgument = words("-e", "--event", "-p", "--pid", "-t", "--tid", "-C", "--cpu", "-G", "--cgroup",
	"--for-each-cgroup", "-I", "--interval-print", "--interval-count", "-r", "--repeat", "-o", "--output",
	"-x", "--field-separator", "-D", "--delay", "-M", "--metrics", "--log-fd", "--pre", "--post", "--control",
	"--timeout", "--td-level", "--cputype", "--filter", "--input", "-b", "--bpf-prog", "--bpf-attr-map")

// parseCommand reads what stands behind "perf stat".
func parseCommand(text string) *command {
	c := &command{}
	words := shellWords(text)
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			c.program = strings.Join(words[i+1:], " ")
			break
		}
		if len(w) < 2 || w[0] != '-' {
			if i == 0 && (w == "record" || w == "report") {
				continue
			}
			c.program = strings.Join(words[i:], " ")
			break
		}
		name, value, given := splitOption(w)
		if !given && withArgument()[name] && i+1 < len(words) {
			i++
			value = words[i]
		}
		c.option(name, value)
	}
	return c
}

// splitOption takes an option apart from an argument that is attached to it:
// -ecycles, -r5, --event=cycles, and -ae cycles with the argument to follow.
func splitOption(w string) (name, value string, given bool) {
	if strings.HasPrefix(w, "--") {
		name, value, given = strings.Cut(w, "=")
		return name, value, given
	}
	for i := 1; i < len(w); i++ {
		name = "-" + w[i:i+1]
		if withArgument()[name] {
			return name, w[i+1:], i+1 < len(w)
		}
	}
	return w, "", false
}

func (c *command) option(name, value string) {
	switch name {
	case "-e", "--event":
		c.request(value)
	case "-r", "--repeat":
		if n, err := strconv.Atoi(value); err == nil && n > 1 && n <= math.MaxInt32 {
			c.repeats = n
		}
	}
}

// request adds the events of one -e. A comma or brace within slashes belongs
// to an event's terms.
func (c *command) request(list string) {
	start, inTerms, group := 0, false, 0
	take := func(end int) {
		if spec := strings.TrimSpace(list[start:end]); spec != "" && !strings.HasPrefix(spec, ":") {
			c.events = append(c.events, request{spec, group})
		}
		start = end + 1
	}
	for i := 0; i < len(list); i++ {
		switch ch := list[i]; {
		case ch == '/':
			inTerms = !inTerms
		case inTerms:
		case ch == '{':
			c.groups++
			group, start = c.groups, i+1
		case ch == '}':
			take(i)
			group = 0
			start = i + 1
		case ch == ',':
			take(i)
		}
	}
	take(len(list))
}

// asksFor reports whether a printed event is one that the command line names.
func (c *command) asksFor(event string) bool {
	if c == nil {
		return false
	}
	return slices.ContainsFunc(c.events, func(q request) bool { return q.prints(event) })
}

// prints reports whether perf prints the requested event under a name: as given, under the
// name= of its terms, with other modifiers, or as the other spelling of a raw code.
func (q request) prints(event string) bool {
	if strings.EqualFold(q.spec, event) {
		return true
	}
	if _, after, found := strings.Cut(q.spec, "name="); found {
		end := strings.IndexAny(after, ",/")
		if end >= 0 && after[:end] == string(stripModifiers([]byte(event))) {
			return true
		}
	}
	spec, base := string(stripModifiers([]byte(q.spec))), string(stripModifiers([]byte(event)))
	if strings.EqualFold(spec, base) || strings.EqualFold(spec, strings.Replace(base, "raw 0x", "r", 1)) {
		return true
	}
	before, _, terms := strings.Cut(q.spec, "/")
	return terms && before == event
}

// shellWords splits a command line as a shell does, as far as quotes and
// backslashes go.
func shellWords(text string) []string {
	var words []string
	var word strings.Builder
	open := false // a word has begun
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, open = c, true
		case c == '\\':
			if i+1 < len(text) {
				i++
				word.WriteByte(text[i])
				open = true
			}
		case isBlank(c):
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}
