//go:build !linux

package output

import "errors"

// exchange is Linux's alone.
func exchange(string, string) error { return errors.ErrUnsupported }
