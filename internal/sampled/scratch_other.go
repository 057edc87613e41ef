//go:build !linux

package sampled

import "os"

// Scratch returns a temporary file.
func Scratch() (*os.File, error) { return os.CreateTemp("", "cyclestack-samples-*") }
