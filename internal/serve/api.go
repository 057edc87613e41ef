package serve

import (
	_ "embed" // for the description
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/page"
)

// openapi describes the API (OpenAPI 3.1).
//
//go:embed openapi.json
var openapi []byte

// What a query may say.
var (
	byForm   = regexp.MustCompile(`^[a-z]{1,16}(,[a-z]{1,16}){0,3}$`)
	timeForm = regexp.MustCompile(`^[0-9.]{0,32},[0-9.]{0,32}$`)
)

// api answers a request of the API.
func (s *Server) api(w http.ResponseWriter, r *http.Request, path string) {
	switch path {
	case "openapi.json":
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(openapi)
		return
	case "recordings":
		s.recordings(w)
		return
	case "live":
		if s.o.Live == nil {
			http.Error(w, "nothing is counted: name a program, -p or -a", http.StatusNotFound)
			return
		}
		s.o.Live.stream(w, r)
		return
	}
	number, of, _ := strings.Cut(strings.TrimPrefix(path, "recordings/"), "/")
	n, ok := s.number(number)
	if !ok || !strings.HasPrefix(path, "recordings/") {
		http.NotFound(w, r)
		return
	}
	switch of {
	case "accounts":
		s.accounts(w, r, n)
	case "stacks":
		s.document(w, r, "report", "--format", "stacks", "--", s.o.Files[n])
	case "code":
		s.document(w, r, "annotate", "--format", "json", "--", s.o.Files[n], r.URL.Query().Get("symbol"))
	default:
		http.NotFound(w, r)
	}
}

// accounts writes accounts of a recording, split and filtered as the query says.
func (s *Server) accounts(w http.ResponseWriter, r *http.Request, n int) {
	args := []string{"-v", "--format", "json"} // -v: the page reads documents, no streams
	for name, form := range map[string]*regexp.Regexp{"by": byForm, "time": timeForm} {
		value := r.URL.Query().Get(name)
		switch {
		case value == "":
		case !form.MatchString(value):
			http.Error(w, name+" is not of the form "+form.String(), http.StatusBadRequest)
			return
		default:
			args = append(args, "--"+name+"="+value)
		}
	}
	s.document(w, r, "report", append(args, "--", s.o.Files[n])...)
}

// document writes what a command prints.
func (s *Server) document(w http.ResponseWriter, r *http.Request, command string, args ...string) {
	var b strings.Builder
	err := s.o.Run(r.Context(), &b, command, args...)
	switch {
	case fault.Of(err) == fault.Usage:
		http.Error(w, page.Printable(err.Error()), http.StatusBadRequest)
	case errors.Is(err, r.Context().Err()) && r.Context().Err() != nil:
	case err != nil:
		http.Error(w, page.Printable(err.Error()), http.StatusUnprocessableEntity)
	default:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write([]byte(b.String()))
	}
}
