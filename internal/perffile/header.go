package perffile

// The layout of the header; see struct perf_file_header in perf's header.h.
const (
	Magic1    = "PERFFILE" // version 1
	Magic2    = "PERFILE2"
	Magic2Big = "2ELIFREP" // Magic2 of a big-endian machine

	PipeSize    = 16  // bytes of the header, in pipe mode
	HeaderSize  = 104 // bytes of the header of a file
	SectionSize = 16  // bytes of a section's offset and size
)

// A Section is a piece of the file.
type Section struct{ Off, Size uint64 }

// End returns the offset behind the section.
func (s Section) End() uint64 { return s.Off + s.Size }

// Align rounds up to a multiple of to, a power of two.
func Align(n, to int) int { return (n + to - 1) &^ (to - 1) }
