//go:build !linux

package ostime

import "time"

var loaded = time.Now()

// sinceBoot is a clock; where there is no /proc it does not matter which.
func sinceBoot() time.Duration { return time.Since(loaded) }

// ownTime is a clock for what takes time here.
func ownTime() time.Duration { return time.Since(loaded) }

func tickTime() float64 { return 0 }
