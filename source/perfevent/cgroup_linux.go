package perfevent

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// CgroupRoot returns the directory of the cgroups by which samples are told apart
// (SampleSpec.Cgroups).
func CgroupRoot() (string, error) { return cgroupMount() }

// openCgroup opens the directory of a cgroup, by which perf_event_open knows
// it.
func openCgroup(name string) (int, error) {
	mount, err := cgroupMount()
	if err != nil {
		return -1, err
	}
	dir := path.Join(mount, path.Clean("/"+name))
	if strings.HasPrefix(name, mount+"/") {
		dir = path.Clean(name)
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &TargetError{fmt.Sprintf("cgroup %s: %s: %v", name, dir, err), err}
	}
	return fd, nil
}

// cgroupMount returns where the cgroups are that perf_event knows: those of
// version 1 if its controller perf_event is in use, else those of version 2.
func cgroupMount() (string, error) {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	unified := ""
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		switch where := unescapeMount(f[1]); f[2] {
		case "cgroup":
			if strings.Contains(","+f[3]+",", ",perf_event,") {
				return where, nil
			}
		case "cgroup2":
			if unified == "" {
				unified = where
			}
		}
	}
	if unified == "" {
		return "", &TargetError{"no cgroup file system is mounted that perf_event knows: mount -t cgroup2 none /sys/fs/cgroup", unix.ENODEV}
	}
	return unified, nil
}

// unescapeMount undoes the octal escapes of /proc/self/mounts.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
