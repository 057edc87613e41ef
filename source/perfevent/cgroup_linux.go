package perfevent

import (
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cyclestack/cyclestack/internal/cgroups"
)

// openCgroup opens the directory of a cgroup. Its descriptor names the cgroup to
// perf_event_open.
func openCgroup(name string) (int, error) {
	mount, err := cgroups.Mount()
	if err != nil {
		return -1, &TargetError{Msg: err.Error(), Err: err}
	}
	dir := path.Join(mount, path.Clean("/"+name))
	if strings.HasPrefix(name, mount+"/") {
		dir = path.Clean(name)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &TargetError{Msg: fmt.Sprintf("cgroup %s: %s: %v", name, dir, err), Err: err}
	}
	return fd, nil
}
