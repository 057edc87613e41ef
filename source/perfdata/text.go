package perfdata

import "strconv"

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }
func xtoa(n uint64) string { return strconv.FormatUint(n, 16) }
