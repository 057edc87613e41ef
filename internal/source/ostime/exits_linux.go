package ostime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// exitSocket is a socket into which the kernel writes a record of each thread that ends on
// this machine.
type exitSocket struct {
	fd     int
	family uint16
	mask   string // the processors whose threads it is about
	buffer []byte
	list   []ending
}

// Numbers of generic netlink that do not change.
const (
	controlFamily  = 16 // GENL_ID_CTRL
	getFamily      = 3  // CTRL_CMD_GETFAMILY
	attrFamilyID   = 1  // CTRL_ATTR_FAMILY_ID
	attrFamilyName = 2  // CTRL_ATTR_FAMILY_NAME

	commandGet     = 1 // TASKSTATS_CMD_GET
	attrRegister   = 3 // TASKSTATS_CMD_ATTR_REGISTER_CPUMASK
	attrDeregister = 4 // TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK
)

// room is what the socket can hold until it is read: some thousand records.
const room = 8 << 20

// listen asks the kernel for its records of threads that end. It needs CAP_NET_ADMIN, and
// no user or PID namespace. root has sys below it.
func listen(root fs.FS) (*exitSocket, error) {
	possible, err := fs.ReadFile(root, "sys/devices/system/cpu/possible")
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_GENERIC)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	x := &exitSocket{fd: fd, mask: strings.TrimSpace(string(possible)), buffer: make([]byte, 1<<13)}
	if err := x.register(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return x, nil
}

func (x *exitSocket) register() error {
	if err := unix.SetsockoptInt(x.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	err := x.ask(controlFamily, getFamily, attrFamilyName, "TASKSTATS", 0)
	if err == nil && x.family == 0 {
		err = errFraming
	}
	if err != nil {
		return fmt.Errorf("TASKSTATS: %w", err)
	}
	if err := x.ask(x.family, commandGet, attrRegister, x.mask, unix.NLM_F_ACK); err != nil {
		return fmt.Errorf("TASKSTATS: %w", err)
	}
	return nil
}

// ask sends a request with one attribute, a text, and takes the answer, which the kernel
// gives before send returns.
func (x *exitSocket) ask(family uint16, command byte, kind uint16, text string, flags uint16) error {
	if err := unix.Sendto(x.fd, request(family, command, kind, text, flags), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	n, err := x.receive()
	if err != nil {
		return err
	}
	return messages(x.buffer[:n], func(kind uint16, content []byte) error {
		switch {
		case kind == messageError && len(content) >= 4:
			if errno := int32(binary.NativeEndian.Uint32(content)); errno != 0 {
				return unix.Errno(-errno)
			}
		case kind == controlFamily && len(content) >= genericHead:
			return attributes(content[genericHead:], func(kind uint16, content []byte) error {
				if kind == attrFamilyID && len(content) >= 2 {
					x.family = binary.NativeEndian.Uint16(content)
				}
				return nil
			})
		}
		return nil
	})
}

// request is a message of generic netlink with one attribute, a text.
func request(family uint16, command byte, kind uint16, text string, flags uint16) []byte {
	order := binary.NativeEndian
	attribute := attributeHead + len(text) + 1
	size := messageHead + genericHead + int(aligned(int64(attribute)))
	b := order.AppendUint32(make([]byte, 0, size), uint32(size))
	b = order.AppendUint16(b, family)
	b = order.AppendUint16(b, unix.NLM_F_REQUEST|flags)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // number, sender
	b = append(b, command, 1, 0, 0)       // version
	b = order.AppendUint16(b, uint16(attribute))
	b = order.AppendUint16(b, kind)
	return append(b, text...)[:size]
}

// receive takes a datagram. The error is EAGAIN if there is none.
func (x *exitSocket) receive() (int, error) {
	for {
		n, err := unix.Read(x.fd, x.buffer)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (x *exitSocket) drain() (list []ending, lost bool, err error) {
	x.list = x.list[:0]
	for {
		n, err := x.receive()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return x.list, lost, nil
		case errors.Is(err, unix.ENOBUFS):
			lost = true
			continue
		case err != nil:
			return x.list, lost, err
		}
		if x.list, err = parseEndings(x.list, x.buffer[:n]); err != nil {
			return x.list, lost, err
		}
	}
}

// close ends the records.
func (x *exitSocket) close() {
	request := request(x.family, commandGet, attrDeregister, x.mask, 0)
	_ = unix.Sendto(x.fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	unix.Close(x.fd)
}
