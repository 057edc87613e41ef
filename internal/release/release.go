// Package release says which build of the program this is.
package release

import "runtime/debug"

// Version is the release.
const Version = "0.1.0-dev"

// Revision is the commit that the binary was built from, "" where it is not known.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = ", modified"
			}
		}
	}
	return rev + dirty
}
