// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Of include/uapi/rdma/rdma_netlink.h, what the netlink library does not name.
const (
	nldevResCtxGet   = 22 // RDMA_NLDEV_CMD_RES_CTX_GET, since kernel 5.14
	nldevResPID      = 28
	nldevResCtx      = 86
	nldevResCtxEntry = 87
	nlaTypeMask      = 0x3fff // NLA_TYPE_MASK: without the flags for nesting and byte order
)

// User is a process that has an RDMA device open.
type User struct {
	PID  int    `json:"pid"`  // 0: not known
	Comm string `json:"comm"` // its command's name, or what there is to say instead
}

// String gives the form for messages: ib_write_bw (pid 71).
func (u User) String() string {
	if u.PID == 0 {
		return u.Comm
	}
	return fmt.Sprintf("%s (pid %d)", u.Comm, u.PID)
}

// Users lists the processes that hold a device of this namespace open (rdma resource show ctx), one entry a process. proc
// is the proc file system ("/proc"), for the names of processes. Where the kernel does not know the process (the thread that
// opened the device has ended) or does not list contexts (before 5.14), one User without a PID says so. ErrNotFound: the
// device is not here.
func (c *Conn) Users(index uint32, proc string) ([]User, error) {
	what := fmt.Sprintf("list users of RDMA device %d", index)
	threads, err := c.contexts(index)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		n, countErr := c.contextCount(index)
		if countErr != nil || n == 0 {
			return nil, translate(what, countErr)
		}
		return []User{{Comm: fmt.Sprintf("%d open contexts of processes that this kernel does not name", n)}}, nil
	}
	if err != nil {
		return nil, translate(what, err)
	}
	var users []User
	for _, thread := range threads {
		user := User{Comm: "a process that the kernel does not name"}
		if thread != 0 {
			var alive bool
			if user, alive = process(proc, thread); !alive {
				continue // ended between the two reads, and with it its hold on the device
			}
		}
		if !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	return users, nil
}

// process finds the process of a thread, which is what the kernel names.
func process(proc string, thread int) (User, bool) {
	status, err := os.ReadFile(fmt.Sprintf("%s/%d/status", proc, thread))
	if err != nil {
		return User{}, false
	}
	pid := thread
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Tgid:"); ok {
			if n, bad := strconv.Atoi(strings.TrimSpace(rest)); bad == nil {
				pid = n
			}
		}
	}
	comm, err := os.ReadFile(fmt.Sprintf("%s/%d/comm", proc, pid))
	return User{PID: pid, Comm: strings.TrimSpace(string(comm))}, err == nil
}

// contexts asks for the thread behind each user context of a device, ascending; 0 where the kernel does not say.
func (c *Conn) contexts(index uint32) ([]int, error) {
	var threads []int
	err := c.ns.Do(func() error {
		for range tries {
			req := nl.NewNetlinkRequest(nl.RDMA_NL_NLDEV<<nl.RDMA_NL_GET_CLIENT_SHIFT|nldevResCtxGet, unix.NLM_F_DUMP)
			req.AddData(nl.NewRtAttr(nl.RDMA_NLDEV_ATTR_DEV_INDEX, nl.Uint32Attr(index)))
			msgs, err := req.Execute(unix.NETLINK_RDMA, 0)
			if errors.Is(err, nl.ErrDumpInterrupted) {
				continue
			}
			if errors.Is(err, unix.EPROTONOSUPPORT) {
				return ErrNoRDMA
			}
			if err != nil {
				return fmt.Errorf("dump contexts: %w", err)
			}
			threads = nil
			for _, m := range msgs {
				found, err := parseContexts(m)
				if err != nil {
					return err
				}
				threads = append(threads, found...)
			}
			return nil
		}
		return fmt.Errorf("dump contexts: %w", nl.ErrDumpInterrupted)
	})
	slices.Sort(threads)
	return threads, err
}

// parseContexts reads one message: RES_CTX { RES_CTX_ENTRY { RES_PID } ... }. An entry without RES_PID is 0.
func parseContexts(msg []byte) ([]int, error) {
	var threads []int
	err := walk(msg, nldevResCtx, func(table []byte) error {
		return walk(table, nldevResCtxEntry, func(entry []byte) error {
			thread := 0
			err := walk(entry, nldevResPID, func(pid []byte) error {
				if len(pid) != 4 {
					return fmt.Errorf("parse RDMA contexts: a PID of %d bytes", len(pid))
				}
				thread = int(nl.NativeEndian().Uint32(pid))
				return nil
			})
			threads = append(threads, thread)
			return err
		})
	})
	return threads, err
}

// walk calls f with the value of every attribute of one type. The library's parser panics on a last attribute without padding.
func walk(b []byte, attr uint16, f func([]byte) error) error {
	native := nl.NativeEndian()
	for len(b) >= unix.SizeofRtAttr {
		size := int(native.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return fmt.Errorf("parse RDMA contexts: an attribute of %d bytes in %d", size, len(b))
		}
		if native.Uint16(b[2:])&nlaTypeMask == attr {
			if err := f(b[unix.SizeofRtAttr:size]); err != nil {
				return err
			}
		}
		b = b[min((size+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(b)):]
	}
	return nil
}

// contextCount reads the number of user contexts from the device's resource summary. The kernel answers EINVAL also for a
// device that is not here.
func (c *Conn) contextCount(index uint32) (uint64, error) {
	if err := c.present(index); err != nil {
		return 0, err
	}
	list, err := ask(c, (*netlink.Handle).RdmaResourceList)
	if err != nil {
		return 0, err
	}
	for _, r := range list {
		if r.Index == index {
			return r.RdmaResourceSummaryEntries["ctx"], nil
		}
	}
	return 0, ErrNotFound
}
