// Package perfrecord takes samples with the kernel's counters and writes them as a perf.data
// file.
//
// It belongs to the third step of the flow
//
//	model → plan → source → counts → account → report
//
// It knows no models. The samples come from package perfevent as the kernel wrote them,
// and are neither decoded nor changed. It adds what a reader needs: what was mapped and
// running before the first record, what the machine is, and the build ids.
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
