package serve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/page"
)

// dropPath is where a page sends a recording that is dropped onto it.
const dropPath = "api/v1/page"

// dropMost is how many bytes a recording may have that is dropped.
const dropMost = 256 << 20

// foreign says why a recording is not taken. It has to come from a page of this server: its
// type is one that forms of other pages cannot send.
func foreign(r *http.Request) (why string, status int) {
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case r.Header.Get("Origin") == "":
		return "a recording is taken from a page of this server only", http.StatusForbidden
	case site != "" && site != "same-origin":
		return "another site", http.StatusForbidden
	case r.Header.Get("Content-Type") != "application/octet-stream":
		return "the type of a recording is application/octet-stream", http.StatusUnsupportedMediaType
	case r.ContentLength > dropMost:
		return fmt.Sprintf("larger than %d MB", dropMost>>20), http.StatusRequestEntityTooLarge
	}
	return "", 0
}

// drop answers with the page of the recording in a request. It is in a file without a name
// meanwhile.
func (s *Server) drop(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "POST has the recording", http.StatusMethodNotAllowed)
		return
	}
	select {
	case s.dropping <- struct{}{}:
		defer func() { <-s.dropping }()
	default:
		http.Error(w, "another recording is being read", http.StatusServiceUnavailable)
		return
	}
	text, err := s.dropped(http.MaxBytesReader(w, r.Body, dropMost))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(w, fmt.Sprintf("larger than %d MB", dropMost>>20), http.StatusRequestEntityTooLarge)
	case err != nil:
		http.Error(w, page.Printable(err.Error()), http.StatusUnprocessableEntity)
	default:
		html(w, text)
	}
}

// dropped is the page of a recording.
func (s *Server) dropped(body io.Reader) (string, error) {
	f, err := output.NewScratch()
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(f, body); err != nil {
		return "", err
	}
	var b strings.Builder
	if err := s.o.Page(&b, f.Path); err != nil {
		return "", errors.New(strings.ReplaceAll(err.Error(), f.Path, "the file"))
	}
	return b.String(), nil
}
