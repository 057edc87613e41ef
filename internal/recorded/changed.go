package recorded

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cyclestack/cyclestack/counts"
)

// interpreters run the program that the first of their arguments names.
var interpreters = []string{"python", "perl", "ruby", "node", "sh", "bash", "dash", "php", "lua", "julia", "Rscript"}

// changedBetween says which programs and sources changed between the two sides: after the
// last old recording, and before the first new one. It compares the files' times.
func changedBetween(sides [2]Side, commands [2]string, sources []string) []counts.Note {
	from, to, ok := between(sides)
	if !ok {
		return nil
	}
	var changed []string
	see := func(names []string) {
		for _, name := range names {
			info, err := os.Stat(name)
			if err == nil && info.Mode().IsRegular() && info.ModTime().After(from) && info.ModTime().Before(to) && !slices.Contains(changed, name) {
				changed = append(changed, name)
			}
		}
	}
	see(programsOf(commands[0]))
	see(programsOf(commands[1]))
	n := len(changed)
	see(sources)
	var notes []counts.Note
	add := func(names []string, text string) {
		if len(names) > 0 {
			note := counts.Notef("%s %s", counts.Name(listShort(names)), text)
			note.Kind = counts.NoteOtherBuild
			notes = append(notes, note)
		}
	}
	add(changed[:n], "changed between the old runs and the new ones")
	add(changed[n:], "changed between the old runs and the new ones: the same line may be other code")
	return notes
}

// listShort names the first of several files.
func listShort(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// between returns when the last recording of the old side and the first of the new side were
// written; not ok if the sides alternate, or that is not known.
func between(sides [2]Side) (from, to time.Time, ok bool) {
	for i := range sides {
		for _, name := range sides[i].Files {
			info, err := os.Stat(name)
			switch {
			case err != nil:
				return from, to, false
			case i == 0 && info.ModTime().After(from):
				from = info.ModTime()
			case i == 1 && (to.IsZero() || info.ModTime().Before(to)):
				to = info.ModTime()
			}
		}
	}
	return from, to, from.Before(to)
}

// programsOf returns the files of the program of a command line: itself, and what an
// interpreter interprets.
func programsOf(command string) []string {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nil
	}
	list := []string{path}
	if name := strings.TrimRight(filepath.Base(words[0]), "0123456789."); slices.Contains(interpreters, name) {
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") {
				return append(list, w)
			}
		}
	}
	return list
}
