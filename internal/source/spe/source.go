package spe

import "github.com/cyclestack/cyclestack/internal/perffile"

// A CPU is a processor's main identification register, MIDR_EL1; 0 if it is not known.
type CPU uint32

// sources are how a processor numbers the places that data comes from.
type sources uint8

const (
	noSources sources = iota
	neoverse          // Arm's own cores
	ampere            // AmpereOne
	hisilicon         // HiSilicon's HIP12
)

// sources returns how a processor numbers data sources. The lists are those of Linux's
// tools/perf/util/arm-spe.c.
func (c CPU) sources() sources {
	part := c >> 4 & 0xfff
	switch c >> 24 {
	case 0x41: // Arm
		switch part {
		case 0xd0c, 0xd40, 0xd49, 0xd4c, 0xd4e, 0xd4f, 0xd81, 0xd85, 0xd87, 0xd89:
			return neoverse
		}
	case 0xc0: // Ampere
		if part == 0xac4 {
			return ampere
		}
	case 0x48: // HiSilicon
		if part == 0xd06 {
			return hisilicon
		}
	}
	return noSources
}

// What other caches said, by shorter names.
const (
	hitm = perffile.SnoopHitM
	peer = perffile.SnoopPeer
	none = perffile.SnoopNone
)

// places are the data sources by number.
var places = map[sources]map[uint16]perffile.DataSrc{
	neoverse: {
		0x0: perffile.SrcL1 | none.Src(),
		0x8: perffile.SrcL2 | none.Src(),
		0x9: perffile.SrcL2 | peer.Src(),
		0xa: perffile.SrcL3 | peer.Src(),
		0xb: perffile.SrcL3 | perffile.SnoopHit.Src(),
		0xc: perffile.SrcL3 | peer.Src(),
		0xd: perffile.SrcOtherCache | peer.Src(),
		0xe: perffile.SrcRAM | none.Src(),
	},
	ampere: {
		0x0: perffile.SrcL2 | peer.Src(),
		0x3: perffile.SrcL3 | perffile.SnoopHit.Src(),
		0x5: perffile.SrcOtherCache | peer.Src(),
		0x7: perffile.SrcRAM | none.Src(),
		0x8: perffile.SrcL1 | none.Src(),
		0x9: perffile.SrcL2 | none.Src(),
	},
	hisilicon: {
		0:  perffile.SrcL2 | peer.Src(),
		1:  perffile.SrcL2 | hitm.Src() | peer.Src(),
		2:  perffile.SrcL3 | perffile.SnoopHit.Src(),
		3:  perffile.SrcL3 | hitm.Src(),
		4:  perffile.SrcL3 | peer.Src(),
		5:  perffile.SrcL3 | hitm.Src() | peer.Src(),
		6:  perffile.SrcOtherCache | peer.Src(),
		7:  perffile.SrcOtherCache | hitm.Src() | peer.Src(),
		8:  perffile.SrcRAM | none.Src(),
		9:  perffile.SrcRemoteRAM,
		13: perffile.SrcIO,
		16: perffile.SrcL2 | none.Src(),
		17: perffile.SrcL2 | hitm.Src(),
		18: perffile.SrcL1 | none.Src(),
	},
}

// DataSrc says where the data of a load or store came from, as the kernel encodes it: 0 for
// other operations. Without a data source, or on a processor whose numbers are not known,
// the events say what the record knows.
func (r *Record) DataSrc(cpu CPU) perffile.DataSrc {
	d := perffile.DataSrc(perffile.OpLoad)
	switch {
	case r.Class != LoadStore:
		return 0
	case r.Store():
		d = perffile.DataSrc(perffile.OpStore)
	}
	from, ok := perffile.DataSrc(0), false
	if r.Load() && r.Has&HasSource != 0 {
		from, ok = places[cpu.sources()][r.Source]
	}
	if !ok {
		from = r.byEvents()
	}
	tlb := perffile.TLB(0)
	switch {
	case r.Events&TLBWalk != 0:
		tlb = perffile.TLBWalker | perffile.TLBMiss
	case r.Events&TLBAccess != 0:
		tlb = perffile.TLBWalker | perffile.TLBHit
	}
	return d | from | tlb.Src()
}

// byEvents is where the data was found, or which cache did not have it, by the events.
func (r *Record) byEvents() perffile.DataSrc {
	from := perffile.DataSrc(0)
	switch e := r.Events; {
	case e&LastMiss != 0:
		from = perffile.SrcMissL3
	case e&LastAccess != 0:
		from = perffile.SrcHitL3
	case e&L1Refill != 0:
		from = perffile.SrcMissL1
	case e&L1Access != 0:
		from = perffile.SrcHitL1
	}
	if r.Events&RemoteAccess != 0 {
		from |= perffile.SrcAway
	}
	if r.Events&Modified != 0 {
		from |= hitm.Src()
	}
	return from
}
