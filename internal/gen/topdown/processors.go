package main

import (
	"fmt"
	"slices"
)

// A processor is one generated model.
type processor struct {
	stem    string // of the model's file
	extends string // stem of the model it states the differences from; "" for none
	cpus    string // names in cpus.toml, separated by blanks
	width   int    // slots per cycle
	title   string // of the processor
	metrics string // files in the perfmon repository
	events  string
	latency string // of retire latencies, "" if the vendor publishes none
	atom    bool   // an efficient core: its own tree, of slots throughout
}

// processors are the models, each after the one that it extends. A model extends
// the processor with the most similar metrics, so the differences are few.
var processors = []processor{
	{
		stem: "haswell", width: 4, cpus: "haswell", title: "Intel Core 4th generation (Haswell)",
		metrics: "HSW/metrics/haswell_metrics.json", events: "HSW/events/haswell_core.json",
	},
	{
		stem: "haswellx", width: 4, extends: "haswell", cpus: "haswellx", title: "Intel Xeon E5/E7 v3 (Haswell-EP)",
		metrics: "HSX/metrics/haswellx_metrics.json", events: "HSX/events/haswellx_core.json",
	},
	{
		stem: "broadwell", width: 4, extends: "haswell", cpus: "broadwell", title: "Intel Core 5th generation (Broadwell)",
		metrics: "BDW/metrics/broadwell_metrics.json", events: "BDW/events/broadwell_core.json",
	},
	{
		stem: "broadwellx", width: 4, extends: "broadwell", cpus: "broadwellx", title: "Intel Xeon E5/E7 v4 (Broadwell-EP)",
		metrics: "BDX/metrics/broadwellx_metrics.json", events: "BDX/events/broadwellx_core.json",
	},
	{
		stem: "skylake", width: 4, cpus: "skylake", title: "Intel Core 6th to 10th generation (Skylake, Kaby Lake, Coffee Lake, Comet Lake)",
		metrics: "SKL/metrics/skylake_metrics.json", events: "SKL/events/skylake_core.json",
	},
	{
		stem: "skylakex", width: 4, extends: "skylake", cpus: "skylakex", title: "Intel Xeon Scalable (Skylake-SP)",
		metrics: "SKX/metrics/skylakex_metrics.json", events: "SKX/events/skylakex_core.json",
	},
	{
		stem: "cascadelakex", width: 4, extends: "skylakex", cpus: "cascadelakex", title: "Intel Xeon Scalable, 2nd generation (Cascade Lake, Cooper Lake)",
		metrics: "CLX/metrics/cascadelakex_metrics.json", events: "CLX/events/cascadelakex_core.json",
	},
	{
		stem: "icelake", width: 5, cpus: "icelake", title: "Intel Core 10th generation (Ice Lake)",
		metrics: "ICL/metrics/icelake_metrics.json", events: "ICL/events/icelake_core.json",
	},
	{
		stem: "rocketlake", width: 5, extends: "icelake", cpus: "rocketlake", title: "Intel Core 11th generation (Rocket Lake)",
		metrics: "RKL/metrics/rocketlake_metrics.json", events: "RKL/events/rocketlake_core.json",
	},
	{
		stem: "tigerlake", width: 5, extends: "icelake", cpus: "tigerlake", title: "Intel Core 11th generation (Tiger Lake)",
		metrics: "TGL/metrics/tigerlake_metrics.json", events: "TGL/events/tigerlake_core.json",
	},
	{
		stem: "icelakex", width: 5, extends: "icelake", cpus: "icelakex", title: "Intel Xeon Scalable, 3rd generation (Ice Lake-SP)",
		metrics: "ICX/metrics/icelakex_metrics.json", events: "ICX/events/icelakex_core.json",
	},
	{
		stem: "alderlake-core", width: 6, cpus: "alderlake:core", title: "P-cores of Intel Core 12th to 14th generation (Alder Lake, Raptor Lake)",
		metrics: "ADL/metrics/alderlake_metrics_goldencove_core.json", events: "ADL/events/alderlake_goldencove_core.json",
	},
	{
		stem: "sapphirerapids", width: 6, extends: "alderlake-core", cpus: "sapphirerapids", title: "Intel Xeon Scalable, 4th generation (Sapphire Rapids)",
		metrics: "SPR/metrics/sapphirerapids_metrics.json", events: "SPR/events/sapphirerapids_core.json",
	},
	{
		stem: "emeraldrapids", width: 6, extends: "sapphirerapids", cpus: "emeraldrapids", title: "Intel Xeon Scalable, 5th generation (Emerald Rapids)",
		metrics: "EMR/metrics/emeraldrapids_metrics.json", events: "EMR/events/emeraldrapids_core.json",
	},
	{
		stem: "sapphirerapidshbm", width: 6, extends: "sapphirerapids", cpus: "sapphirerapidshbm", title: "Intel Xeon Max (Sapphire Rapids with HBM)",
		metrics: "SPR/metrics/sapphirerapidshbm_metrics.json", events: "SPR/events/sapphirerapids_core.json",
	},
	{
		stem: "meteorlake-core", width: 6, extends: "alderlake-core", cpus: "meteorlake:core", title: "P-cores of Intel Core Ultra, series 1 (Meteor Lake)",
		metrics: "MTL/metrics/meteorlake_metrics_redwoodcove_core.json", events: "MTL/events/meteorlake_redwoodcove_core.json",
	},
	{
		stem: "graniterapids", width: 6, extends: "sapphirerapids", cpus: "graniterapids", title: "Intel Xeon 6 (Granite Rapids)",
		metrics: "GNR/metrics/graniterapids_metrics.json", events: "GNR/events/graniterapids_core.json",
		latency: "GNR/metrics/graniterapids_retire_latency.json",
	},
	{
		stem: "lunarlake-core", width: 8, cpus: "lunarlake:core", title: "P-cores of Intel Core Ultra, series 2 (Lunar Lake)",
		metrics: "LNL/metrics/lunarlake_metrics_lioncove_core.json", events: "LNL/events/lunarlake_lioncove_core.json",
	},
	{
		stem: "arrowlake-core", width: 8, extends: "lunarlake-core", cpus: "arrowlake:core", title: "P-cores of Intel Core Ultra, series 2 (Arrow Lake)",
		metrics: "ARL/metrics/arrowlake_metrics_lioncove_core.json", events: "ARL/events/arrowlake_lioncove_core.json",
	},
	{
		stem: "sierraforest", width: 6, cpus: "sierraforest", title: "Intel Xeon 6 with E-cores (Sierra Forest)", atom: true,
		metrics: "SRF/metrics/sierraforest_metrics.json", events: "SRF/events/sierraforest_core.json",
	},
	{
		stem: "grandridge", width: 6, extends: "sierraforest", cpus: "grandridge", title: "Intel Atom (Grand Ridge)", atom: true,
		metrics: "GRR/metrics/grandridge_metrics.json", events: "GRR/events/grandridge_core.json",
	},
}

// knownStems returns an error if one of the stems is of no generated model.
func knownStems(stems []string) error {
	for _, stem := range stems {
		if !slices.ContainsFunc(processors, func(p processor) bool { return p.stem == stem }) {
			return fmt.Errorf("there is no model %q", stem)
		}
	}
	return nil
}
