//go:build !unix

package ostime

import "os"

// take finds nothing: only Linux says it.
func (*usage) take(*os.ProcessState) {}
