package profile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A debuginfod finds files by build id through the user's servers of debug information
// (DEBUGINFOD_URLS), by elfutils' debuginfod-find. Without that program it looks into the cache
// which that program and others fill. It is nil if the user's environment names no server.
type debuginfod struct {
	cache string
	tool  string // "" if it is not installed
	gone  error  // why the servers are no longer asked
}

// Bounds of one file, and of what servers may take that do not answer.
const (
	fetchTime  = 2 * time.Minute
	fetchBytes = "1073741824"
	slowAnswer = 10 * time.Second
)

// newDebuginfod returns nil if the environment names no server.
func newDebuginfod() *debuginfod {
	if os.Getenv("DEBUGINFOD_URLS") == "" {
		return nil
	}
	d := &debuginfod{cache: os.Getenv("DEBUGINFOD_CACHE_PATH")}
	if dir, err := os.UserCacheDir(); d.cache == "" && err == nil {
		d.cache = filepath.Join(dir, "debuginfod_client")
	}
	d.tool, _ = exec.LookPath("debuginfod-find")
	return d
}

var errNoDebuginfodFind = errors.New("DEBUGINFOD_URLS names servers, but debuginfod-find (of elfutils) is not installed: only its cache is read")

// find returns the path of a file: the kind is debuginfo or executable.
func (d *debuginfod) find(kind, id string) (string, error) {
	if d == nil || len(id) < 8 || !isHex(id) {
		return "", nil
	}
	if d.cache != "" {
		path := filepath.Join(d.cache, id, kind)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return path, nil
		}
	}
	switch {
	case d.tool == "":
		return "", errNoDebuginfodFind
	case d.gone != nil:
		return "", d.gone
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.tool, kind, id)
	cmd.Env = os.Environ()
	for name, value := range map[string]string{"DEBUGINFOD_MAXSIZE": fetchBytes, "DEBUGINFOD_MAXTIME": fmt.Sprint(int(fetchTime / time.Second)), "DEBUGINFOD_TIMEOUT": fmt.Sprint(int(slowAnswer / time.Second))} {
		if os.Getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	begin := time.Now()
	out, err := cmd.Output()
	if err != nil {
		if time.Since(begin) > slowAnswer {
			d.gone = fmt.Errorf("the servers of DEBUGINFOD_URLS did not answer in %v, and are not asked again", slowAnswer)
			return "", d.gone
		}
		return "", nil // they do not have it
	}
	path := string(out)
	for len(path) > 0 && path[len(path)-1] == '\n' {
		path = path[:len(path)-1]
	}
	return path, nil
}
