// Package perfdata reads perf.data, the recordings of Linux's perf. It knows version 1
// and 2 of the header, both byte orders and attributes of any size. It reads pipe mode,
// compressed recordings, directories of perf record --threads, and perf stat record.
//
// It belongs to the third step of the flow
//
//	model → plan → source → counts → account → report
//
// It knows neither models nor symbols. A [Reader] walks the records of a file in file
// order, without allocation for each:
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
// A [TableReader] makes tables of counts of the same files: the intervals of perf stat
// record, and events × periods of samples.
//
// # What the package promises
//
// The names follow the compatibility rule of the module. A reader's memory does not grow
// with the length of the file, and no input makes it panic. Errors have the file and the
// offset. Nothing is left out in silence: [Stats] counts records that were lost, damaged
// or unknown.
//
// Numbers are the kernel's and perf's: types of records (PERF_RECORD_…), parts of samples
// (PERF_SAMPLE_…), and the bits of Misc (PERF_RECORD_MISC_…) and of attributes. The
// layouts are those of the kernel's include/uapi/linux/perf_event.h and of perf's
// tools/perf/Documentation/perf.data-file-format.txt.
package perfdata
