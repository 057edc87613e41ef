package measure

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"strconv"
	"strings"
)

// UserProcesses returns the processes of a user by their numbers, with commas between them.
// The user is a name or a number. This process is not among them.
func UserProcesses(root fs.FS, name string) (string, error) {
	id := name
	if u, err := user.Lookup(name); err == nil {
		id = u.Uid
	} else if _, err := strconv.ParseUint(name, 10, 32); err != nil {
		return "", fmt.Errorf("%s: there is no such user", name)
	}
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return "", err
	}
	var list []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		status, err := fs.ReadFile(root, path.Join("proc", e.Name(), "status"))
		if err == nil && effectiveUser(string(status)) == id {
			list = append(list, e.Name())
		}
	}
	if len(list) == 0 {
		return "", fmt.Errorf("%s: the user has no processes", name)
	}
	return strings.Join(list, ","), nil
}

// effectiveUser returns the effective user of a process from its /proc/PID/status, "" for a
// zombie.
func effectiveUser(status string) string {
	id := ""
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		switch {
		case key == "State" && len(fields) > 0 && fields[0] == "Z":
			return ""
		case key == "Uid" && len(fields) > 1:
			id = fields[1]
		}
	}
	return id
}
