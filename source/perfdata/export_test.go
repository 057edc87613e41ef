package perfdata

// Version returns the version of the header.
func (r *Reader) Version() int { return r.header.version }

// BigEndian reports whether a big-endian machine wrote the file.
func (r *Reader) BigEndian() bool { return r.d.big }
