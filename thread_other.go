//go:build !linux

package cyclestack

// threadID is not used where nothing can be counted.
func threadID() int { return 0 }
