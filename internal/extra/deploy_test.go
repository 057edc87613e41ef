package extra_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cyclestack/cyclestack/internal/extra"
)

// accepts checks that agent takes all flags of a file. A file that is not there keeps it from
// running, as the last that it looks at.
func accepts(t *testing.T, file string, args ...string) {
	t.Helper()
	var msg bytes.Buffer
	const missing = "no-such-web.yml"
	status := extra.Main(t.Context(), append(append([]string{"agent"}, args...), "--web-config", missing), strings.NewReader(""), io.Discard, &msg)
	if status != 3 || !strings.Contains(msg.String(), missing) {
		t.Errorf("%s: %q: status %d: %s", file, args, status, msg.String())
	}
}

// TestDeploy: the files of deploy are what their readers take, and name flags that exist.
func TestDeploy(t *testing.T) {
	t.Parallel()
	deploy := filepath.Join("..", "..", "deploy")
	text, err := os.ReadFile(filepath.Join(deploy, "kubernetes", "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o struct {
			Kind  string
			Rules []struct{ Resources, Verbs []string }
			Spec  struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Args            []string
							SecurityContext struct {
								ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
								AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
								Privileged               bool
								Capabilities             struct{ Drop, Add []string }
							} `yaml:"securityContext"`
						}
					}
				}
			}
		}
		if err := d.Decode(&o); err != nil {
			if err != io.EOF {
				t.Fatal(err)
			}
			break
		}
		kinds[o.Kind]++
		for _, r := range o.Rules {
			if strings.Join(r.Resources, ",") != "nodes/pods" || strings.Join(r.Verbs, ",") != "get" {
				t.Errorf("rule %+v", r)
			}
		}
		for _, c := range o.Spec.Template.Spec.Containers {
			accepts(t, "agent.yaml", append([]string{"--root", "/host"}, c.Args...)...)
			s := c.SecurityContext
			if !s.ReadOnlyRootFilesystem || s.Privileged || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				strings.Join(s.Capabilities.Drop, ",") != "ALL" || strings.Join(s.Capabilities.Add, ",") != "PERFMON" {
				t.Errorf("%+v", s)
			}
		}
	}
	if kinds["DaemonSet"] != 1 || kinds["ServiceAccount"] != 1 {
		t.Errorf("%v", kinds)
	}
	unit := filepath.Join(deploy, "systemd", "cyclestack-agent.service")
	if text, err = os.ReadFile(unit); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte("ExecStart=/usr/local/bin/cyclestack-extra agent $ARGS\n")) {
		t.Error("the unit does not start the agent")
	}
	accepts(t, unit, "--listen", ":9749", "--web-config", "/etc/cyclestack/web.yml", "--containers", "50")
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze: the unit is not checked")
	}
	here := filepath.Join(t.TempDir(), filepath.Base(unit))
	text = bytes.ReplaceAll(text, []byte("/usr/local/bin/cyclestack-extra"), []byte("/bin/true"))
	if err := os.WriteFile(here, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", here).CombinedOutput(); bytes.Contains(out, []byte(filepath.Base(here))) {
		t.Errorf("%v: %s", err, out)
	}
}
