package perffile

// Where data can have come from, as the kernel encodes it: the level in the old and in the
// newer field, a remote one with its distance.
const (
	SrcNA         = DataSrc(1<<5 | 0xf<<33)
	SrcL1         = DataSrc((oldHit|oldL1)<<5) | DataSrc(LevelL1)<<33
	SrcLFB        = DataSrc((oldHit|oldLFB)<<5) | DataSrc(LevelLFB)<<33
	SrcL2         = DataSrc((oldHit|oldL2)<<5) | DataSrc(LevelL2)<<33
	SrcL3         = DataSrc((oldHit|oldL3)<<5) | DataSrc(LevelL3)<<33
	SrcRAM        = DataSrc((oldHit|oldRAM)<<5) | DataSrc(LevelRAM)<<33
	SrcRemoteRAM  = DataSrc((oldHit|oldRemoteRAM1)<<5) | DataSrc(LevelRAM)<<33 | SrcAway | SrcNode
	SrcLocalCache = DataSrc((oldHit|oldL3|oldRemoteCache1)<<5) | DataSrc(LevelAnyCache)<<33 | SrcCore
	SrcNearCache  = DataSrc((oldHit|oldRemoteCache1)<<5) | DataSrc(LevelAnyCache)<<33 | SrcAway | SrcCore
	SrcFarCache   = DataSrc((oldHit|oldRemoteCache2)<<5) | DataSrc(LevelAnyCache)<<33 | SrcAway | SrcNode
	SrcOtherCache = DataSrc(oldRemoteCache1<<5) | DataSrc(LevelAnyCache)<<33 | SrcAway
	SrcIO         = DataSrc((oldHit|oldIO)<<5) | DataSrc(LevelIO)<<33
	SrcUncached   = DataSrc((oldHit|oldUncached)<<5) | DataSrc(LevelUncached)<<33
	SrcPMEM       = DataSrc(LevelPMEM) << 33
	SrcCXL        = DataSrc(LevelCXL) << 33

	SrcMissL1 = DataSrc((oldMiss | oldL1) << 5)
	SrcMissL3 = DataSrc((oldMiss | oldL3) << 5)
	SrcHitL1  = DataSrc((oldHit | oldL1) << 5) // without the newer field
	SrcHitL3  = DataSrc((oldHit | oldL3) << 5)

	SrcAway = DataSrc(1 << 37) // the level is remote
	SrcCore = DataSrc(1 << 43) // PERF_MEM_HOPS_0: another core of the node
	SrcNode = DataSrc(2 << 43) // PERF_MEM_HOPS_1: another node

	SrcUnlocked = DataSrc(1 << 24)
	SrcLocked   = DataSrc(2 << 24)
)

// Src is a snoop as a part of a DataSrc.
func (s Snoop) Src() DataSrc { return DataSrc(s&0x1f)<<19 | DataSrc(s>>5)<<38 }

// Src is a translation as a part of a DataSrc.
func (t TLB) Src() DataSrc { return DataSrc(t) << 26 }
