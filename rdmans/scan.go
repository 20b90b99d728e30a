// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Scan looks for the network namespaces of a node.
type Scan struct {
	Proc string // the proc file system, "/proc"
	Run  string // where bind mounts of namespaces are kept, "/run/netns"; empty: only what Proc's mount table shows
	// Deep also looks at every descriptor, every socket and every thread of every process, and at the mount tables that are not the
	// caller's: slower, and what finds the holder of a namespace that no process lives in and no path leads to.
	Deep bool
}

// Namespace is a network namespace other than the caller's own.
type Namespace struct {
	ID      ID       `json:"id"`
	Holders []Holder `json:"holders"` // who keeps it alive; bind mounts first, then processes by PID
}

// Holder keeps a namespace alive.
type Holder struct {
	Mount string `json:"mount,omitempty"` // path of a bind mount
	PID   int    `json:"pid,omitempty"`   // process in it, or with a descriptor of it
	Comm  string `json:"comm,omitempty"`  // the process's command
	// By says with what a process that does not live in the namespace keeps it: "descriptor 5", "socket 6", "thread 72", "mount
	// /run/netns/x" of a mount namespace that is not the caller's.
	By string `json:"by,omitempty"`
	// Via is the path below the proc file system by which the process was found; it leads to the namespace.
	Via string `json:"via,omitempty"`
}

// String gives the form for messages: "/run/netns/blue", "nginx (pid 71)", "nsenter (pid 71, descriptor 5)".
func (h Holder) String() string {
	switch {
	case h.Mount != "":
		return h.Mount
	case h.By != "":
		return fmt.Sprintf("%s (pid %d, %s)", h.Comm, h.PID, h.By)
	}
	return fmt.Sprintf("%s (pid %d)", h.Comm, h.PID)
}

// Name gives the path of the first bind mount, or net:[inode] when there is none.
func (n Namespace) Name() string {
	if len(n.Holders) > 0 && n.Holders[0].Mount != "" {
		return n.Holders[0].Mount
	}
	return n.ID.String()
}

// Open opens the namespace through any of its holders. ErrNoNamespace when all of them have let go of it.
func (n Namespace) Open() (*NS, error) {
	for _, h := range n.Holders {
		open := func() (*NS, error) { return OpenNS(cmp.Or(h.Mount, h.Via)) }
		if strings.HasPrefix(h.By, "socket ") {
			open = func() (*NS, error) { return openSocketNS(h.PID, h.Via) }
		}
		opened, err := open()
		if err != nil {
			continue
		}
		if opened.ID() == n.ID {
			return opened, nil
		}
		if err := opened.Close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("open %s: %w", n.ID, ErrNoNamespace)
}

// liveProc is where the numbers of processes are those that the kernel knows them by.
const liveProc = "/proc"

// Namespaces lists the network namespaces that can be seen, by inode. What disappears while it looks is left out; a
// namespace without a visible holder (of a shallow look: one that a socket alone holds) is not found.
func (s Scan) Namespaces(ctx context.Context) ([]Namespace, error) {
	self, err := stat(filepath.Join(s.Proc, "self/ns/net"))
	if err != nil {
		return nil, err
	}
	found := map[ID][]Holder{}
	for _, path := range s.mounts() {
		if id, gone := stat(path); gone == nil && isNetNS(path) {
			found[id] = append(found[id], Holder{Mount: path})
		}
	}
	pids, err := os.ReadDir(s.Proc)
	if err != nil {
		return nil, gone(s.Proc, err)
	}
	look := looking{Scan: s, dev: self.Dev, found: found, tables: map[uint64]bool{s.tableOf("self"): true}, silent: new(int)}
	for _, entry := range pids {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("look for network namespaces: %w", err)
		}
		look.process(pid)
	}
	delete(found, self)
	list := make([]Namespace, 0, len(found))
	for id, holders := range found {
		list = append(list, Namespace{ID: id, Holders: holders})
	}
	slices.SortFunc(list, func(a, b Namespace) int { return cmp.Compare(a.ID.Ino, b.ID.Ino) })
	return list, nil
}

// looking is one scan on its way.
type looking struct {
	Scan
	dev    uint64 // of the file system of namespaces
	found  map[ID][]Holder
	tables map[uint64]bool // mount namespaces whose table was read
	silent *int            // mounts that did not answer
}

// tableOf gives the inode of a process's mount namespace; 0 when it cannot be told.
func (s Scan) tableOf(pid string) uint64 {
	var st unix.Stat_t
	if unix.Stat(filepath.Join(s.Proc, pid, "ns/mnt"), &st) != nil {
		return 0
	}
	return st.Ino
}

// process adds what one process holds. A process that ends meanwhile holds nothing.
func (l looking) process(pid int) {
	dir := filepath.Join(l.Proc, strconv.Itoa(pid))
	links := []string{filepath.Join(dir, "ns/net")}
	if l.Deep {
		links = append(links, children(dir+"/task", "/ns/net")...)
		links = append(links, children(dir+"/fd", "")...)
	}
	seen := map[ID]bool{}
	for i, link := range links {
		id, ok := namespaceOf(link, l.dev)
		if !ok || seen[id] {
			continue
		}
		seen[id] = true
		h := Holder{PID: pid, Via: link}
		if i > 0 {
			h.By = by(strings.TrimPrefix(link, dir+"/"))
		}
		if !l.add(id, dir, h) {
			return
		}
	}
	if !l.Deep {
		return
	}
	if l.Proc == liveProc {
		l.sockets(pid, dir, seen)
	}
	table := l.tableOf(strconv.Itoa(pid))
	if table == 0 || l.tables[table] {
		return
	}
	l.tables[table] = true
	for _, mount := range mountsOf(dir + "/mountinfo") {
		path := dir + "/root" + mount
		id, ok := l.answers(path)
		// Most mounts of a node are copied into most mount namespaces, and go from all of them at once.
		mounted := slices.ContainsFunc(l.found[id], func(h Holder) bool { return h.Mount != "" })
		if ok && !seen[id] && !mounted {
			seen[id] = true
			l.add(id, dir, Holder{PID: pid, By: "mount " + mount, Via: path})
		}
	}
}

// add notes a holder, unless its process has ended.
func (l looking) add(id ID, dir string, h Holder) bool {
	comm, err := os.ReadFile(dir + "/comm")
	if err != nil {
		return false
	}
	h.Comm = strings.TrimSpace(string(comm))
	l.found[id] = append(l.found[id], h)
	return true
}

// by words a link below a process's folder: "fd/5", "task/72/ns/net".
func by(link string) string {
	parts := strings.Split(link, "/")
	if parts[0] == "task" {
		return "thread " + parts[1]
	}
	return "descriptor " + parts[1]
}

// children gives the paths of a folder's entries with something after each.
func children(dir, after string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the process has ended
	}
	paths := make([]string, 0, len(entries))
	for _, e := range entries {
		paths = append(paths, dir+"/"+e.Name()+after)
	}
	return paths
}

// namespaceOf tells which network namespace a link below /proc leads to. A descriptor may be of anything, so what it is of is
// neither opened nor asked to bring its attributes up to date (a dead file server would not answer) before it is known to be
// a namespace of some kind.
func namespaceOf(link string, dev uint64) (ID, bool) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st); err != nil {
		return ID{}, false
	}
	id := ID{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino}
	return id, id.Dev == dev && isNetNS(link)
}

// mounts lists paths that may be bind mounts of namespaces, sorted, each once.
func (s Scan) mounts() []string {
	var paths []string
	if entries, err := os.ReadDir(s.Run); err == nil {
		for _, e := range entries {
			paths = append(paths, filepath.Join(s.Run, e.Name()))
		}
	}
	paths = append(paths, mountsOf(filepath.Join(s.Proc, "self/mountinfo"))...)
	slices.Sort(paths)
	return slices.Compact(paths)
}

// mountsOf gives the mount points of namespaces in a mount table; none of one that cannot be read.
func mountsOf(table string) []string {
	// Read as a whole: a line may be of any length, as that of an overlay of many layers is, and must not hide those behind it.
	text, err := os.ReadFile(table)
	if err != nil {
		return nil
	}
	var paths []string
	for line := range strings.Lines(string(text)) {
		// proc_pid_mountinfo(5): ID, parent, device, root, mount point; the root of an nsfs mount is the namespace's name.
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[3], "net:[") {
			paths = append(paths, unescape(fields[4]))
		}
	}
	return paths
}

// unescape undoes the octal escapes of blanks in mount tables.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Alive tells whether the namespace at a path is still the one of that identity.
func Alive(path string, id ID) (bool, error) {
	now, err := stat(path)
	if errors.Is(err, ErrNoNamespace) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return now == id, nil
}
