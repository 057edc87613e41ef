//go:build !linux

package agent

import "os"

// scratch returns a temporary file.
func scratch() (*os.File, error) { return os.CreateTemp("", "cyclestack-profile-*") }
