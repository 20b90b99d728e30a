// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sockets adds the namespaces that one process keeps by a socket alone: one that was opened there before the process, or the one that
// gave it the socket, went elsewhere. Nothing below /proc leads to them; the kernel tells of a copy of the socket (SIOCGSKNS).
func (l looking) sockets(pid int, dir string, seen map[ID]bool) {
	process := -1
	defer func() {
		if process >= 0 {
			_ = unix.Close(process)
		}
	}()
	for _, link := range children(dir+"/fd", "") {
		target, err := os.Readlink(link)
		number, convErr := strconv.Atoi(filepath.Base(link))
		if err != nil || convErr != nil || !strings.HasPrefix(target, "socket:") {
			continue
		}
		if process < 0 {
			if process, err = unix.PidfdOpen(pid, 0); err != nil {
				return // the process has ended
			}
		}
		ns, err := socketNS(process, number)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		err = unix.Fstat(ns, &st)
		_ = unix.Close(ns)
		id := ID{Dev: st.Dev, Ino: st.Ino}
		if err != nil || seen[id] {
			continue
		}
		seen[id] = true
		if !l.add(id, dir, Holder{PID: pid, By: fmt.Sprintf("socket %d", number), Via: link}) {
			return
		}
	}
}

// socketNS opens the network namespace of a socket that another process has.
func socketNS(process, number int) (int, error) {
	socket, err := unix.PidfdGetfd(process, number, 0)
	if err != nil {
		return -1, fmt.Errorf("copy descriptor %d: %w", number, err)
	}
	defer func() { _ = unix.Close(socket) }()
	ns, err := unix.IoctlRetInt(socket, unix.SIOCGSKNS)
	if err != nil {
		return -1, fmt.Errorf("ask for the namespace of descriptor %d: %w", number, err)
	}
	return ns, nil
}

// openSocketNS opens the namespace that a socket keeps: via is its link below /proc.
func openSocketNS(pid int, via string) (*NS, error) {
	number, err := strconv.Atoi(filepath.Base(via))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", via, ErrNoNamespace)
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", via, ErrNoNamespace)
	}
	defer func() { _ = unix.Close(process) }()
	ns, err := socketNS(process, number)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", via, ErrNoNamespace)
	}
	defer func() { _ = unix.Close(ns) }()
	return OpenNS(fmt.Sprintf("/proc/self/fd/%d", ns))
}
