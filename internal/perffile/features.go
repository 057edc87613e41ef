package perffile

// The sections of the header.
const (
	FeatureTracingData = iota + 1
	FeatureBuildID
	FeatureHostname
	FeatureOSRelease
	FeatureVersion
	FeatureArch
	FeatureNrCPUs
	FeatureCPUDesc
	FeatureCPUID
	FeatureTotalMem
	FeatureCmdline
	FeatureEventDesc
	FeatureCPUTopology
	FeatureNUMATopology
	FeatureBranchStack
	FeaturePMUMappings
	FeatureGroupDesc
	FeatureAuxtrace
	FeatureStat
	FeatureCache
	FeatureSampleTime
	FeatureMemTopology
	FeatureClockID
	FeatureDirFormat
	FeatureBPFProgInfo
	FeatureBPFBTF
	FeatureCompressed
	FeatureCPUPMUCaps
	FeatureClockData
	FeatureHybridTopology
	FeaturePMUCaps

	MaxFeatures = 256
)
