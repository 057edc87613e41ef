package source

import "io"

// watch returns a reader that tells Progress what is read. A file, which can be read at any place,
// is at its beginning then.
func (r *Recording) watch(src io.Reader) io.Reader {
	if f, ok := src.(file); ok {
		size, err := f.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			r.size += size
			return watchedFile{f, r}
		}
	}
	r.size = -1
	return watchedStream{src, r}
}

// tell tells Progress that n more bytes were read.
func (r *Recording) tell(n int) {
	if passed := r.passed.Add(int64(n)); r.Progress != nil {
		r.Progress(passed, r.size)
	}
}

// A file can be read at any place.
type file interface {
	io.ReadSeeker
	io.ReaderAt
}

// A watchedFile tells what is read.
type watchedFile struct {
	file
	of *Recording
}

func (w watchedFile) Read(b []byte) (int, error) {
	n, err := w.file.Read(b)
	w.of.tell(n)
	return n, err
}

func (w watchedFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := w.file.ReadAt(b, off)
	w.of.tell(n)
	return n, err
}

// A watchedStream tells what is read.
type watchedStream struct {
	io.Reader
	of *Recording
}

func (w watchedStream) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if err == io.EOF {
		w.of.size = w.of.passed.Load() + int64(n)
	}
	w.of.tell(n)
	return n, err
}
