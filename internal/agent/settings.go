package agent

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

// A settingsFile is a file with settings. What it does not have is as the command line says.
type settingsFile struct {
	Interval   *string `toml:"interval"`
	Budget     *string `toml:"budget"`
	Levels     *int    `toml:"level"`
	Cgroups    *int    `toml:"cgroup-level"`
	Containers *int    `toml:"containers"`
	MaxSeries  *int    `toml:"max-series"`
	Kubelet    *string `toml:"kubelet"`
	Token      *string `toml:"kubelet-token"`
	OTLP       *string `toml:"otlp"`
	Profiles   *string `toml:"profiles"`
	Sockets    *bool   `toml:"per-socket"`
}

// readSettings reads a file into settings.
func readSettings(name string, o Settings) (Settings, error) {
	text, err := readBounded(name)
	if err != nil {
		return o, fault.As(fault.Input, err)
	}
	var f settingsFile
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&f); err != nil {
		var strict *toml.StrictMissingError
		var at *toml.DecodeError
		switch {
		case errors.As(err, &strict) && len(strict.Errors) > 0:
			row, _ := strict.Errors[0].Position()
			return o, fault.Inputf("%s:%d: %s is no setting", name, row, strings.Join(strict.Errors[0].Key(), "."))
		case errors.As(err, &at):
			row, _ := at.Position()
			return o, fault.Inputf("%s:%d: %w", name, row, at)
		}
		return o, fault.Inputf("%s: %w", name, err)
	}
	if f.Interval != nil {
		if o.Interval, err = time.ParseDuration(*f.Interval); err != nil {
			return o, fault.Inputf("%s: interval: %w", name, err)
		}
	}
	if f.Budget != nil {
		if o.Budget, err = ParseShare(*f.Budget); err != nil {
			return o, fault.Inputf("%s: %w", name, err)
		}
	}
	put(&o.Levels, f.Levels)
	put(&o.CgroupLevels, f.Cgroups)
	put(&o.Containers, f.Containers)
	put(&o.MaxSeries, f.MaxSeries)
	put(&o.Kubelet, f.Kubelet)
	put(&o.Token, f.Token)
	put(&o.OTLP, f.OTLP)
	put(&o.Profiles, f.Profiles)
	put(&o.Sockets, f.Sockets)
	if err := o.Check(); err != nil {
		return o, fault.Inputf("%s: %w", name, err)
	}
	return o, nil
}

// put sets what a file has.
func put[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// Reload reads the files anew: settings, certificates, users and the names of containers.
// Counters go on. After an error everything stays as it was.
func (a *Agent) Reload() error {
	err := a.reloadFiles()
	a.s.r.mu.Lock()
	a.reloads[err == nil].add(1)
	a.s.r.mu.Unlock()
	if err != nil {
		a.o.Log.Warn("reload", "error", err)
	}
	return err
}

func (a *Agent) reloadFiles() error {
	o := a.o.Settings
	if a.o.Config != "" {
		var err error
		if o, err = readSettings(a.o.Config, o); err != nil {
			return err
		}
	}
	if a.web != nil {
		if err := a.web.config.reload(); err != nil {
			return err
		}
	}
	a.adopt(o)
	return nil
}

// adopt has settings hold from now on.
func (a *Agent) adopt(o Settings) {
	a.s.r.mu.Lock()
	a.s.r.most = o.MaxSeries
	if a.groups != nil {
		workloads, containers := o.places()
		a.work.most = workloads
		switch {
		case a.single != nil:
			a.single.most = containers
		case containers > 0:
			a.single = newTable(a.s, series.ByContainer, containers)
		}
	}
	a.gauges[series.Budget].set(o.Budget)
	a.s.r.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.live = o
	a.fresh = true
	close(a.changed)
	a.changed = make(chan struct{})
}

// ParseShare reads a share: "0.1%" or "0.001".
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0) || v > 1 {
		return 0, fault.Optionf("budget", text, "it is a share of the processors' time, such as 0.1%%")
	}
	return v, nil
}

// ownLabels are the labels that the agent gives itself.
var ownLabels = []string{series.Model, series.ModelVersion, series.Processor, series.CoreType, series.Socket, series.Scope, series.Service,
	series.Namespace, series.Pod, series.Container, series.Method, series.Group, series.Node, series.Mode, series.Resource, series.Kind,
	series.Result, "instance", "job", "part", "unit", "goversion", "release"}

var labelName = regexp.MustCompile("^[a-zA-Z_][a-zA-Z0-9_]*$")

// mostLabels bounds how many labels a user may add.
const mostLabels = 16

// fixedLabels reads labels that all series have.
func fixedLabels(list []string) (pairs []string, err error) {
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		switch {
		case !ok || value == "" || !labelName.MatchString(name) || strings.HasPrefix(name, "__"):
			return nil, fault.Optionf("label", text, "it is NAME=VALUE, with a name as Prometheus has it")
		case slices.Contains(ownLabels, name):
			return nil, fault.Optionf("label", text, "the agent has a label %s of its own", name)
		case len(pairs) >= 2*mostLabels:
			return nil, fault.Optionf("label", text, "at most %d labels", mostLabels)
		}
		pairs = append(pairs, name, value)
	}
	return pairs, nil
}
