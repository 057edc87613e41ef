//go:build !unix

package ostime

import "os"

// usage finds nothing: what Linux tells is not there.
func (w *Watch) usage(*os.ProcessState) {}
