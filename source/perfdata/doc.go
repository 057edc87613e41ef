// Package perfdata reads and writes perf.data, the recordings of Linux's perf:
// version 1 and 2 of the header, both byte orders, attributes of any size, pipe
// mode, compressed recordings, and those of perf stat record.
//
// It is the third step of the flow
//
//	model → plan → source → counts → account → report
//
// and knows neither models nor symbols. A [Reader] walks the records of a file
// in file order, without allocation for each:
//
//	r, err := perfdata.NewReader(f, "perf.data", perfdata.Options{})
//	if err != nil {
//		return err
//	}
//	defer r.Close()
//	for r.Next() {
//		switch rec := r.Record().(type) {
//		case *perfdata.Sample:
//			use(rec.Event(), rec.IP(), rec.Period())
//		case *perfdata.Mmap:
//			load(rec.PID, rec.Addr, string(rec.Filename))
//		}
//	}
//	return r.Err()
//
// A [TableReader] turns the same files into tables of counts: the intervals of
// perf stat record, and events × periods of samples. A [Writer] writes files
// that perf reads.
//
// The layouts are those of the kernel's include/uapi/linux/perf_event.h and of
// perf's tools/perf/Documentation/perf.data-file-format.txt.
package perfdata
