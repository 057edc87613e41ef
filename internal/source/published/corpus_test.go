package published_test

// A want is a figure as a person reads it in a file: shares in percent.
type want struct {
	name  string
	value float64
}

// corpus has figures of published files.
var corpus = map[string][]want{
	"toplev/dendibakh-2018-12-29-Understanding-IDQ_UOPS_NOT_DELIVER-02.txt": {{"Frontend_Bound", 0.03}}, // it has one
	"toplev/dendibakh-2019-05-06-Estimating-branch-probability-01.txt": {
		{"Frontend_Bound", 10.93}, {"Bad_Speculation", 41.98}, {"marked.Bad_Speculation", 2}, {"marked.Backend_Bound", 1}, {"marked.Retiring", 0}},
	"toplev/dendibakh-2019-05-06-Estimating-branch-probability-02.txt": {
		{"Bad_Speculation.Branch_Mispredicts", 39.29}, {"marked.Bad_Speculation.Branch_Mispredicts", 2}, {"Retiring.Base", 31.15}, {"Backend_Bound.Core_Bound", 8.47}},
	"toplev/dendibakh-6-2_TMA-Intel-01.txt": {
		{"Frontend_Bound.FE_Latency", 12.11}, {"Bad_Speculation.Branch_Mispred", 0.22}, {"Backend_Bound.Memory_Bound", 44.59}, {"marked.Backend_Bound.Memory_Bound", 2}},
	"toplev/dendibakh-6-2_TMA-Intel-02.txt": {
		{"Retiring", 32.41}, {"BE_Bound.Mem_Bound.DRAM_Bound", 47.11}, {"marked.BE_Bound.Mem_Bound.DRAM_Bound", 2}, {"BE_Bound.Core_Bound.Ports_Util", 11.31}},
	"toplev/dendibakh-post-01.txt": {{"Frontend_Bound", 13.81}, {"Backend_Bound", 53.43}, {"marked.Backend_Bound", 2}, {"Retiring", 32.53}},
	"toplev/dendibakh-post-02.txt": {{"Backend_Bound.Memory_Bound", 44.59}, {"Retiring.Microcode_Sequencer", 7.65}, {"Bad_Speculation.Machine_Clears", 0.01}},
	"toplev/dendibakh-post-03.txt": {
		{"Frontend_Bound.Frontend_Bandwidth.MITE", 7.33}, {"Backend_Bound.Memory_Bound.DRAM_Bound", 47.11}, {"Retiring.Base.Other", 98.55}, {"Backend_Bound.Core_Bound.Divider", 8.56}},
	"toplev/hand-issue369-skl-l1.csv":    {{"Frontend_Bound", 53.9}, {"Bad_Speculation", 13273.4}, {"Backend_Bound", -13254.6}, {"marked.Bad_Speculation", 2}},
	"toplev/hand-issue370-skx-mux.txt":   {{"Frontend_Bound", 32.9}, {"Bad_Speculation", 5.3}, {"Backend_Bound", 53.8}, {"marked.Backend_Bound", 2}},
	"toplev/hand-issue370-skx-nomux.txt": {{"Frontend_Bound", 61.7}, {"Retiring", 10.5}, {"Backend_Bound", 20}, {"marked.Frontend_Bound", 2}},
	"toplev/lkp-toplev-clx6252.csv":      {{"Frontend_Bound", 22.79}, {"Bad_Speculation", 39.5}, {"Backend_Bound", (10.65 + 56.52) / 2}, {"Bad_Speculation.Branch_Mispredicts", 39.84}},
	"perfspect/hand-issue455-percpu-summary.csv": {
		{"CPI", (0.427333 + 0.404411 + 0.502529) / 3}, {"CPU utilization %", (4.492046 + 3.552165 + 0.461658) / 3}, {"CPU operating frequency (in GHz)", (3.792334 + 3.792271 + 3.792331) / 3}},
	"perfspect/speccpu17-CLX-500.csv": {{"Average LLC data read miss latency (in clks)", 225.5110796068711}, {"Average LLC data read miss latency (in ns)", 97.80851949067478}, {"CPI", 0.8932584687116566}, {"DRAM power (watts)", 27.141435582822087}, {"Frontend_Bound", 33.3838857026994}, {"Backend_bound", 8.178703425214724}},
	"perfspect/speccpu17-CLX-502.csv": {{"CPI", 2.225090337847222}, {"DRAM power (watts)", 49.727680555555565}, {"Frontend_Bound", 18.050301653333324}, {"Backend_bound", 53.015591620347244}},
	"perfspect/speccpu17-CLX-505.csv": {{"CPI", 5.259176341122453}, {"DRAM power (watts)", 56.57315306122448}, {"Frontend_Bound", 11.02227430673469}, {"Backend_bound", 64.40427346209185}},
	"perfspect/speccpu17-CLX-520.csv": {{"CPI", 3.35778194568075}, {"DRAM power (watts)", 51.401971830985886}, {"Frontend_Bound", 16.895021648497654}, {"Backend_bound", 61.79154890253517}},
	"perfspect/speccpu17-CLX-523.csv": {{"CPI", 3.000982962429908}, {"DRAM power (watts)", 47.321158878504676}, {"Frontend_Bound", 17.42697422971963}, {"Backend_bound", 50.932177305046714}},
	"perfspect/speccpu17-CLX-541.csv": {{"CPI", 1.2363216828947368}, {"DRAM power (watts)", 21.227460526315777}, {"Frontend_Bound", 24.440978589013167}, {"Backend_bound", 6.654114449539474}},
	"perfspect/speccpu17-CLX-548.csv": {{"CPI", 1.0136686526582286}, {"DRAM power (watts)", 20.162556962025313}, {"Frontend_Bound", 32.84216134455695}, {"Backend_bound", 1.9631327961392413}},
	"perfspect/speccpu17-CLX-557.csv": {{"CPI", 1.4914782437931031}, {"DRAM power (watts)", 39.94886896551725}, {"Frontend_Bound", 14.581115361655176}, {"Backend_bound", 33.71165109227586}},
	"perfspect/speccpu17-ICX-502.csv": {{"IPC", 0.5576114744827586}, {"Bad_Speculation", 36.93011930448276}, {"Backend_Bound.Memory_Bound", 34.84492753758621}, {"memory bandwidth read (MB/sec)", 222747.64668707584}},
}
