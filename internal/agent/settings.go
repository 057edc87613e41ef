package agent

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/fleet/series"
)

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
