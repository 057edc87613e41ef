package perfdata_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cyclestack/cyclestack/source/perfdata"
)

// A raw builds records byte by byte, in either byte order, independently of the
// package's own writer.
type raw struct {
	b     []byte
	order binary.AppendByteOrder
}

func little() *raw { return &raw{order: binary.LittleEndian} }
func big() *raw    { return &raw{order: binary.BigEndian} }

func (r *raw) u16(v ...uint16) *raw {
	for _, v := range v {
		r.b = r.order.AppendUint16(r.b, v)
	}
	return r
}

func (r *raw) u32(v ...uint32) *raw {
	for _, v := range v {
		r.b = r.order.AppendUint32(r.b, v)
	}
	return r
}

func (r *raw) u64(v ...uint64) *raw {
	for _, v := range v {
		r.b = r.order.AppendUint64(r.b, v)
	}
	return r
}

func (r *raw) bytes(b ...byte) *raw { r.b = append(r.b, b...); return r }

// record appends a record.
func (r *raw) record(kind perfdata.RecordType, misc uint16, body []byte) *raw {
	return r.u32(uint32(kind)).u16(misc, uint16(8+len(body))).bytes(body...)
}

// body starts the body of a record.
func (r *raw) body() *raw { return &raw{order: r.order} }

// pipe begins a file in pipe mode.
func (r *raw) pipe() *raw {
	magic := []byte("PERFILE2")
	if r.order == binary.AppendByteOrder(binary.BigEndian) {
		magic = []byte("2ELIFREP")
	}
	return r.bytes(magic...).u64(16)
}

// attr is a struct perf_event_attr of 64 bytes, for a little-endian machine's
// flags.
func (r *raw) attr(kind uint32, config, period, sampleType, readFormat, flags uint64) []byte {
	return r.body().u32(kind, 64).u64(config, period, sampleType, readFormat, flags).u32(0, 0).u64(0).b
}

// open reads a file in memory.
func open(t testing.TB, b []byte) *perfdata.Reader {
	t.Helper()
	r, err := perfdata.NewReader(bytes.NewReader(b), "test.data", perfdata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// types reads all records and returns their types.
func types(r *perfdata.Reader) []perfdata.RecordType {
	var out []perfdata.RecordType
	for r.Next() {
		out = append(out, r.Record().Head().Type)
	}
	return out
}
