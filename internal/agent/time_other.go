//go:build !unix

package agent

import "time"

// processTime is not known.
func processTime() time.Duration { return 0 }
