package perfrecord

import (
	"encoding/hex"
	"io/fs"

	"github.com/cyclestack/cyclestack/internal/object"
	"github.com/cyclestack/cyclestack/source/perfdata"
)

// Kept is what several recordings of one machine share, so that short ones which follow each
// other read it once. They must be made one after another.
type Kept struct {
	// Brief says that recordings of the whole machine describe only processes that run. The
	// first describes all of them. What processes have mapped is kept: see [process].
	Brief bool

	known    map[int]*process // nil before the first recording
	kernel   module
	modules  []module
	list     string // /proc/modules, when modules were read
	features *perfdata.Features
	ids      map[keptFile]string
}

// A keptFile is a file whose build id is known.
type keptFile struct {
	name string
	inode
}

// keptMost bounds the build ids that are kept.
const keptMost = 1 << 14

// readKernel finds out where the kernel and its modules are, as [host.readKernel] does.
func (k *Kept) readKernel(h *host) {
	list, _ := fs.ReadFile(h.root, "proc/modules") // some kernels have none
	if k.kernel.len == 0 || string(list) != k.list {
		h.readKernel()
		k.kernel, k.modules, k.list = h.kernel, h.modules, string(list)
		return
	}
	h.kernel, h.modules = k.kernel, k.modules
}

// header returns what the header says of the machine.
func (k *Kept) header(h *host, o Options) *perfdata.Features {
	if k.features == nil {
		k.features = h.features(o)
	}
	f := *k.features
	return &f
}

// buildID returns the build id of a file, nil if it has none.
func (k *Kept) buildID(name string, is inode) []byte {
	key := keptFile{name, is}
	id, ok := k.ids[key]
	if !ok {
		if len(k.ids) >= keptMost {
			clear(k.ids)
		}
		if k.ids == nil {
			k.ids = map[keptFile]string{}
		}
		id = string(buildID(name))
		k.ids[key] = id
	}
	return []byte(id)
}

// buildID reads the build id of a file, nil if it has none.
func buildID(name string) []byte {
	o, err := object.Open(name, object.Options{})
	if err != nil {
		return nil
	}
	defer o.Close()
	id, err := hex.DecodeString(o.BuildID)
	if err != nil {
		return nil
	}
	return id
}
