// Package perfrecord takes samples with the kernel's counters and writes them as a
// perf.data file, which perf reads, and packages perfdata and samples do.
//
// It is one of the packages of the third step of the flow
//
//	model → plan → source → counts → account → report
//
// and knows no models: it is told what to sample. The samples come from package
// perfevent as the kernel wrote them, and are neither decoded nor changed. What
// a reader needs beside them is added: what was mapped and running before the
// first record, what the machine is, and the build ids of the programs.
//
//	sys, err := perfevent.ReadSystem(os.DirFS("/"))
//	groups, err := sys.ResolveSampled("cpu-clock/freq=3989/")
//	r, err := perfrecord.Start(ctx, sys, perfevent.SampleSpec{
//		Groups: groups,
//		Target: perfevent.Target{Command: []string{"ls"}},
//	}, file, perfrecord.Options{})
//	defer r.Close()
//	err = r.Run()
//	fmt.Println(r.Stats().Samples)
package perfrecord
