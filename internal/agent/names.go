package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// names are the labels of containers by their identifiers.
type names map[string]labels

// Bounds on what is read for names.
const (
	nameBytes   = 32 << 20
	nameEntries = 1 << 14
	nameEvery   = 15 * time.Second // or less often
)

// A namer reads names from the files of runtimes, and from a kubelet. It reads them anew
// when there are containers without.
type namer struct {
	root    string // of the host's files
	kubelet string // a URL or a file with a list of pods; "" for none
	token   string // file with the kubelet's token; "" for none
	client  *http.Client
	last    time.Time
	known   names
}

// refresh reads all names. A source that is not there has none; the error is of sources
// that are, and of a kubelet.
func (n *namer) refresh(ctx context.Context, now time.Time) error {
	n.last = now
	found := names{}
	err := errors.Join(n.logs(found), n.docker(found), n.podman(found), n.pods(ctx, found))
	if err == nil || len(found) > 0 {
		n.known = found
	}
	return err
}

// due reports whether names may be read again.
func (n *namer) due(now time.Time) bool { return n.last.IsZero() || now.Sub(n.last) >= nameEvery }

// entries lists a directory of the host, without error if it is not there.
func (n *namer) entries(dir string) ([]string, error) {
	f, err := os.Open(filepath.Join(n.root, dir))
	if err != nil {
		return nil, present(err)
	}
	defer f.Close()
	list, err := f.Readdirnames(nameEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return list, err
}

// present is nil for a file that does not exist, or that nobody but root may read.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// readBounded reads a file.
func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, nameBytes+1))
	if err == nil && len(text) > nameBytes {
		err = fmt.Errorf("%s: more than %d bytes", name, nameBytes)
	}
	return text, err
}

// logs reads the names of log files that the kubelet makes for each container:
// POD_NAMESPACE_CONTAINER-ID.log.
func (n *namer) logs(found names) error {
	list, err := n.entries("var/log/containers")
	for _, file := range list {
		if id, l, ok := parseLog(file); ok {
			found[id] = l
		}
	}
	return err
}

// parseLog reads what the name of a container's log says.
func parseLog(file string) (id string, l labels, ok bool) {
	name, ok := strings.CutSuffix(file, ".log")
	if !ok {
		return "", l, false
	}
	pod, rest, ok := strings.Cut(name, "_")
	namespace, rest, also := strings.Cut(rest, "_")
	at := strings.LastIndexByte(rest, '-')
	if !ok || !also || at < 1 || !hexadecimal(rest[at+1:]) {
		return "", l, false
	}
	return rest[at+1:], labels{namespace: namespace, service: serviceOf(pod), pod: pod, container: rest[:at]}, true
}

// serviceOf returns what made a pod, from the pod's name: of a Deployment NAME-HASH-RANDOM,
// of a DaemonSet or a Job NAME-RANDOM, of a StatefulSet NAME-NUMBER.
func serviceOf(pod string) string {
	rest, last := cutLast(pod)
	switch {
	case rest == "":
		return pod
	case strings.Trim(last, "0123456789") == "":
		return rest
	case len(last) != 5 || !random(last):
		return pod
	}
	if name, hash := cutLast(rest); name != "" && len(hash) >= 6 && len(hash) <= 10 && random(hash) {
		return name
	}
	return rest
}

func cutLast(name string) (before, last string) {
	at := strings.LastIndexByte(name, '-')
	if at < 1 {
		return "", name
	}
	return name[:at], name[at+1:]
}

// random reports whether Kubernetes may have made up a name: k8s.io/apimachinery's package
// util/rand has these letters.
func random(name string) bool { return strings.Trim(name, "bcdfghjklmnpqrstvwxz2456789") == "" }

// docker reads the configurations of Docker's containers.
func (n *namer) docker(found names) error {
	const dir = "var/lib/docker/containers"
	list, err := n.entries(dir)
	for _, id := range list {
		if !hexadecimal(id) {
			continue
		}
		text, e := readBounded(filepath.Join(n.root, dir, id, "config.v2.json"))
		var c struct {
			Name   string
			Config struct{ Labels map[string]string }
		}
		if e == nil {
			e = json.Unmarshal(text, &c)
		}
		if e != nil {
			err = errors.Join(err, present(e))
			continue
		}
		name := strings.TrimPrefix(c.Name, "/")
		found[id] = labels{service: cmp.Or(c.Config.Labels["com.docker.compose.service"], name, "docker"),
			namespace: c.Config.Labels["com.docker.compose.project"], container: cmp.Or(name, short(id))}
	}
	return err
}

// podman reads the list of containers of Podman and CRI-O, which share its format.
func (n *namer) podman(found names) error {
	text, err := readBounded(filepath.Join(n.root, "var/lib/containers/storage/overlay-containers/containers.json"))
	if err != nil {
		return present(err)
	}
	var list []struct {
		ID    string   `json:"id"`
		Names []string `json:"names"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("containers.json: %w", err)
	}
	for _, c := range list {
		if _, known := found[c.ID]; !known && len(c.Names) > 0 && len(found) < nameEntries {
			found[c.ID] = labels{service: c.Names[0], container: c.Names[0]}
		}
	}
	return nil
}

// A podList is what a kubelet answers to /pods, as far as it is used here.
type podList struct {
	Items []struct {
		Metadata struct {
			Name            string
			Namespace       string
			Labels          map[string]string
			OwnerReferences []struct{ Kind, Name string }
		}
		Status struct {
			ContainerStatuses, InitContainerStatuses, EphemeralContainerStatuses []podStatus
		}
	}
}

type podStatus struct {
	Name        string
	ContainerID string
}

// pods reads the kubelet's list.
func (n *namer) pods(ctx context.Context, found names) error {
	if n.kubelet == "" {
		return nil
	}
	text, err := n.fetch(ctx)
	if err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	var list podList
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("kubelet: %s: %w", n.kubelet, err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		service := serviceOf(p.Metadata.Name)
		if owners := p.Metadata.OwnerReferences; len(owners) > 0 {
			service = owners[0].Name
			if name, hash := cutLast(service); owners[0].Kind == "ReplicaSet" && random(hash) && name != "" {
				service = name
			}
		}
		for _, statuses := range [][]podStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses} {
			for _, s := range statuses {
				_, id, _ := strings.Cut(s.ContainerID, "://")
				if id != "" && len(found) < nameEntries {
					found[id] = labels{namespace: p.Metadata.Namespace, service: service, pod: p.Metadata.Name, container: s.Name}
				}
			}
		}
	}
	return nil
}

// fetch reads the list from a file or over HTTP.
func (n *namer) fetch(ctx context.Context) ([]byte, error) {
	if !strings.HasPrefix(n.kubelet, "http://") && !strings.HasPrefix(n.kubelet, "https://") {
		return readBounded(n.kubelet)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.kubelet, nil)
	if err != nil {
		return nil, err
	}
	if n.token != "" {
		token, err := readBounded(n.token)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	answer, err := n.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", n.kubelet, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, nameBytes+1))
	if err == nil && len(text) > nameBytes {
		err = fmt.Errorf("%s: more than %d bytes", n.kubelet, nameBytes)
	}
	return text, err
}

// newNamer returns a namer of a host whose files are below a directory.
func newNamer(root string, o *Settings) namer {
	n := namer{root: root, kubelet: o.Kubelet, token: o.Token}
	n.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: n.authority(), MinVersion: tls.VersionTLS12}}}
	return n
}

// authority returns the certificates next to the token, as Kubernetes puts them there; nil,
// which is the system's, if there are none.
func (n *namer) authority() *x509.CertPool {
	if n.token == "" {
		return nil
	}
	text, err := readBounded(filepath.Join(filepath.Dir(n.token), "ca.crt"))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		return nil
	}
	return pool
}
