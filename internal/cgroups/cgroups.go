// Package cgroups finds the file system of the cgroups that the kernel counts by.
package cgroups

import (
	"errors"
	"os"
	"strings"
)

// Mount returns the directory of the cgroups that perf_event knows: those of
// version 1 if its controller perf_event is in use, else those of version 2.
func Mount() (string, error) {
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
		return "", errors.New("no cgroup file system is mounted that perf_event knows: mount -t cgroup2 none /sys/fs/cgroup")
	}
	return unified, nil
}

// unescapeMount undoes the octal escapes of /proc/self/mounts.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
