package export

import "encoding/binary"

// A message is a message of protocol buffers. Its methods append fields; those of 0 are left
// out. See https://protobuf.dev/programming-guides/encoding.
type message []byte

// The kinds of fields.
const (
	wireNumber = 0
	wireBytes  = 2
)

// The fields of pprof's messages: github.com/google/pprof/proto/profile.proto.
const (
	profileSampleType  = 1
	profileSample      = 2
	profileMapping     = 3
	profileLocation    = 4
	profileFunction    = 5
	profileString      = 6
	profileDuration    = 10
	profileComment     = 13
	profileDefaultType = 14

	typeName = 1
	typeUnit = 2

	sampleLocations = 1
	sampleValues    = 2
	sampleLabel     = 3
	labelKey        = 1
	labelText       = 2

	mappingID        = 1
	mappingFile      = 5
	mappingBuildID   = 6
	mappingFunctions = 7
	mappingFilenames = 8
	mappingLines     = 9
	mappingInlined   = 10

	locationID      = 1
	locationMapping = 2
	locationAddr    = 3
	locationLine    = 4
	lineFunction    = 1
	lineNumber      = 2

	functionID         = 1
	functionName       = 2
	functionSystemName = 3
	functionFile       = 4
)

// empty returns the message without fields, to use its memory again.
func (m message) empty() message { return m[:0] }

func (m message) number(field int, v uint64) message {
	if v == 0 {
		return m
	}
	return binary.AppendUvarint(binary.AppendUvarint(m, uint64(field<<3|wireNumber)), v)
}

func (m message) bytes(field int, b []byte) message {
	if len(b) == 0 {
		return m
	}
	m = binary.AppendUvarint(m, uint64(field<<3|wireBytes))
	return append(binary.AppendUvarint(m, uint64(len(b))), b...)
}

func (m message) truth(field int, v bool) message {
	if v {
		return m.number(field, 1)
	}
	return m
}
