package agent

import (
	"strings"

	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// An identity is what a cgroup's path says of it.
type identity struct {
	runtime string // "docker", "containerd", "crio", "podman", …; "" for no container
	id      string // of the container, as the runtime has it
	pod     string // the UID of its pod
	unit    string // the service of systemd, or the name of a cgroup at the top
}

// container reports whether the cgroup is the one of a container.
func (i identity) container() bool { return i.runtime != "" }

// prefixes are how the names of containers' cgroups begin where systemd manages them, as
// in cri-containerd-ID.scope. The longer come first.
var prefixes = []struct{ prefix, runtime string }{
	{"cri-containerd-", "containerd"},
	{"containerd-", "containerd"},
	{"crio-", "crio"},
	{"libpod-", "podman"},
	{"docker-", "docker"},
	{"nerdctl-", "containerd"},
}

// parents are cgroups whose children are containers where no systemd manages them, as in
// docker/ID.
var parents = map[string]string{"docker": "docker", "libpod_parent": "podman", "crio": "crio", "containerd": "containerd", "lxc": "lxc"}

// identify says what a cgroup is, from its path. Only the last name says what the cgroup
// itself is; names before it may come from a container around it. The result is false
// for a cgroup that is neither a container nor a service.
func identify(path string) (identity, bool) {
	names := strings.Split(strings.Trim(path, "/"), "/")
	last := names[len(names)-1]
	if i, ok := managed(last); ok {
		i.pod = podOf(names[:len(names)-1], last)
		return i, true
	}
	if len(names) > 1 {
		if i, ok := below(names[len(names)-2], last); ok {
			i.pod = podOf(names[:len(names)-1], "")
			return i, true
		}
	}
	name, isService := strings.CutSuffix(last, ".service")
	switch {
	case path == "" || path == "/":
		return identity{unit: "root"}, true
	case isService:
		return identity{unit: unescaped(name)}, true
	case len(names) == 1:
		name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(last, ".slice"), ".scope"), ".mount")
		return identity{unit: unescaped(name)}, true
	}
	return identity{}, false
}

// managed recognises the name of a container's cgroup that says so itself.
func managed(last string) (identity, bool) {
	name := strings.TrimSuffix(last, ".scope")
	if parts := strings.Split(name, ":"); len(parts) == 3 { // slice:prefix:id of runc's systemd driver that has no systemd
		if hexadecimal(parts[2]) {
			return identity{runtime: runtimeOf(parts[1]), id: parts[2]}, true
		}
	}
	for _, p := range prefixes {
		if id, ok := strings.CutPrefix(name, p.prefix); ok && hexadecimal(id) {
			return identity{runtime: p.runtime, id: id}, true
		}
	}
	if id, ok := strings.CutPrefix(name, "lxc.payload."); ok && id != "" {
		return identity{runtime: "lxc", id: id}, true
	}
	if id, ok := strings.CutPrefix(name, "machine-"); ok && name != last && id != "" {
		return identity{runtime: "machine", id: unescaped(id)}, true
	}
	return identity{}, false
}

// runtimeOf returns the runtime that a prefix stands for.
func runtimeOf(prefix string) string {
	for _, p := range prefixes {
		if p.prefix == prefix+"-" {
			return p.runtime
		}
	}
	return "cri"
}

// below recognises a container's cgroup by its parent: a pod, or the runtime's own.
func below(parent, last string) (identity, bool) {
	if runtime, ok := parents[parent]; ok && last != "" && (hexadecimal(last) || runtime == "lxc") {
		return identity{runtime: runtime, id: last}, true
	}
	if podUID(parent) != "" && hexadecimal(last) {
		return identity{runtime: "cri", id: last}, true
	}
	return identity{}, false
}

// podOf returns the UID of a container's pod: the name of its own cgroup begins with it, or
// it is that of the cgroup above.
func podOf(names []string, own string) string {
	if slice, _, ok := strings.Cut(own, ":"); ok {
		if uid := podUID(slice); uid != "" {
			return uid
		}
	}
	if len(names) == 0 {
		return ""
	}
	return podUID(names[len(names)-1])
}

// podUID returns the UID in a pod's cgroup: podUID, or kubepods-burstable-podUID.slice with
// underscores where systemd manages it. "" if it is no pod.
func podUID(name string) string {
	name, slice := strings.CutSuffix(name, ".slice")
	at := strings.LastIndex(name, "pod")
	if at < 0 || at > 0 && !(slice || strings.Contains(name, "-pod")) {
		return ""
	}
	uid := strings.ReplaceAll(name[at+len("pod"):], "_", "-")
	if len(uid) < 32 || strings.Trim(uid, "0123456789abcdef-") != "" { // static pods have 32 digits
		return ""
	}
	return uid
}

// hexadecimal reports whether a name is an identifier as runtimes make them: 32 digits or
// more.
func hexadecimal(id string) bool {
	return len(id) >= 32 && strings.Trim(id, "0123456789abcdef-") == ""
}

// unescaped undoes systemd's escapes: \x2d is a minus.
func unescaped(name string) string {
	if !strings.Contains(name, `\x`) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if i+3 < len(name) && name[i] == '\\' && name[i+1] == 'x' {
			if c, ok := hexByte(name[i+2], name[i+3]); ok {
				b.WriteByte(c)
				i += 3
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

func hexByte(a, b byte) (byte, bool) {
	digit := func(c byte) int { return strings.IndexByte("0123456789abcdef", c|0x20) }
	if digit(a) < 0 || digit(b) < 0 {
		return 0, false
	}
	return byte(digit(a)<<4 | digit(b)), true
}

// shortID is how many digits of a container's identifier are shown: as docker ps does.
const shortID = 12

// labels are what an entity's series have in common.
type labels struct{ namespace, service, pod, container string }

// labels returns what is known of an entity: its names where a runtime or the kubelet tells
// them, else identifiers.
func (i identity) labels(n names) labels {
	switch found, ok := n[i.id]; {
	case !i.container():
		return labels{service: i.unit}
	case ok:
		return found
	case i.pod != "":
		return labels{service: "pod", pod: i.pod, container: short(i.id)}
	}
	return labels{service: i.runtime, container: short(i.id)}
}

func short(id string) string {
	if hexadecimal(id) {
		return id[:shortID]
	}
	return id
}

// workload returns the labels of scope workload.
func (l labels) workload() []string {
	return []string{series.Namespace, l.namespace, series.Service, l.service}
}

// single returns the labels of scope container.
func (l labels) single() []string {
	return []string{series.Namespace, l.namespace, series.Service, l.service, series.Pod, l.pod, series.Container, l.container}
}
