//go:build unix

package emulator

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A listener accepts the connections of a Unix socket. It is not package net's, which brings
// the resolver of host names into the program: 200 kB.
type listener struct{ fd int }

func listen(path string) (*listener, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	unix.CloseOnExec(fd)
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen %s: %w", path, err)
	}
	return &listener{fd}, nil
}

// accept waits for a connection, until stop.
func (l *listener) accept() (*os.File, error) {
	for {
		fd, _, err := unix.Accept(l.fd)
		switch err {
		case nil:
			unix.CloseOnExec(fd)
			if err := unix.SetNonblock(fd, true); err != nil { // before NewFile, for deadlines
				unix.Close(fd)
				return nil, err
			}
			return os.NewFile(uintptr(fd), "socket"), nil
		case unix.EINTR, unix.ECONNABORTED:
			continue
		}
		return nil, err
	}
}

// stop ends accept.
func (l *listener) stop() { _ = unix.Shutdown(l.fd, unix.SHUT_RDWR) }

// close closes the socket, after accept has returned.
func (l *listener) close() { unix.Close(l.fd) }
