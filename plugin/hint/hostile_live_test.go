// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/hint/outsidetest"
)

// names are all that the plugin uses in a pod's folder.
func planted() []string {
	return []string{"nccl.conf", "fabric.json", ".podfabric-nccl.conf", ".podfabric-fabric.json"}
}

// attack is something that a pod does to its folder before ADD comes.
type attack struct {
	name string
	// plant does it to one of the names; at is the path.
	plant func(t *testing.T, at string, o *outsidetest.Tree)
	// arrives: the hint replaces it.
	arrives bool
	// linked: the file outside to which it is a hard link.
	linked string
}

// links are the symbolic links that lead out, and hard links; each is replaced and none is followed.
func links() []attack {
	to := func(name, target string) attack {
		return attack{"link " + name, func(t *testing.T, at string, o *outsidetest.Tree) {
			t.Helper()
			must(t, os.Symlink(strings.ReplaceAll(target, "OUT", o.Dir), at))
		}, true, ""}
	}
	hard := func(name string) attack {
		return attack{"hard link to " + name, func(t *testing.T, at string, o *outsidetest.Tree) {
			t.Helper()
			must(t, os.Link(o.File(name), at))
		}, true, name}
	}
	return []attack{
		to("to a file", "OUT/file"), to("to a folder", "OUT/folder"), to("to nothing", "OUT/folder/new"), to("upwards", "../../../../../../outside/file"),
		to("upwards for ever", strings.Repeat("../", 100)+"OUT/file"), to("by the root of a process", "/proc/self/root/OUT/file"),
		to("by the folder of a process", "/proc/self/cwd"), to("to a descriptor", "/proc/self/fd/3"), to("to the files of its name", "OUT/folder/nccl.conf"),
		to("to itself", "nccl.conf"), to("to its folder", "."), to("to the folder above", ".."), to("to the root", "/"), to("to standard error", "/dev/stderr"),
		to("with a newline", "a\nb"), to("too long", strings.Repeat("a/", 2000)+"b"),
		hard("file"), hard("secret"), hard("program"), hard("folder/below/file"),
	}
}

// things are files that are none, or not such as the plugin makes.
func things() []attack {
	put := func(name string, arrives bool, plant func(t *testing.T, at string)) attack {
		return attack{name, func(t *testing.T, at string, _ *outsidetest.Tree) { t.Helper(); plant(t, at) }, arrives, ""}
	}
	file := func(name string, mode os.FileMode, size int64) attack {
		return put(name, true, func(t *testing.T, at string) {
			t.Helper()
			must(t, os.WriteFile(at, []byte("NCCL_NET_PLUGIN=/x.so\n"), 0o600))
			must(t, os.Truncate(at, size))
			must(t, os.Chmod(at, mode))
		})
	}
	node := func(name string, kind uint32, dev uint64) attack {
		return put(name, true, func(t *testing.T, at string) { t.Helper(); must(t, unix.Mknod(at, kind|0o666, int(dev))) })
	}
	return []attack{
		node("fifo", unix.S_IFIFO, 0), node("device that is full", unix.S_IFCHR, unix.Mkdev(1, 7)), node("device without an end", unix.S_IFCHR, unix.Mkdev(1, 5)),
		node("disk", unix.S_IFBLK, unix.Mkdev(254, 0)), node("terminal", unix.S_IFCHR, unix.Mkdev(5, 0)), node("no device", unix.S_IFCHR, unix.Mkdev(0, 0)),
		put("fifo with a reader", true, func(t *testing.T, at string) {
			t.Helper()
			must(t, unix.Mkfifo(at, 0o666))
			f, err := os.OpenFile(at, os.O_RDWR|unix.O_NONBLOCK, 0)
			must(t, err)
			t.Cleanup(func() { _ = f.Close() })
		}),
		put("socket", true, func(t *testing.T, at string) {
			t.Helper()
			// By a short path: that of a socket is at most 107 bytes long.
			dir, err := os.Open(filepath.Dir(at))
			must(t, err)
			defer dir.Close()
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(at)), Net: "unix"})
			must(t, err)
			// Its Close would unlink that path, when the descriptor's number may long be another test's folder.
			l.SetUnlinkOnClose(false)
			t.Cleanup(func() { _ = l.Close() })
		}),
		file("empty file", 0o644, 0), file("huge file", 0o644, 1<<40), file("file without permissions", 0, 10), file("setuid file", 0o4777|os.ModeSetuid, 10),
		put("file of another user", true, func(t *testing.T, at string) {
			t.Helper()
			must(t, os.WriteFile(at, []byte("x"), 0o644))
			must(t, os.Chown(at, 1000, 1000))
		}),
		put("empty folder", false, func(t *testing.T, at string) { t.Helper(); must(t, os.Mkdir(at, 0o700)) }),
		put("full folder", false, func(t *testing.T, at string) { t.Helper(); must(t, os.MkdirAll(at+"/a/b", 0o700)) }),
		put("deep tree", false, func(t *testing.T, at string) { t.Helper(); dig(t, at, 600) }),
		put("crowded folder", false, func(t *testing.T, at string) {
			t.Helper()
			must(t, os.Mkdir(at, 0o777))
			for i := range 300 {
				must(t, os.WriteFile(fmt.Sprintf("%s/%d\n\x1b[2J", at, i), nil, 0o600))
			}
		}),
		put("immutable file", false, func(t *testing.T, at string) {
			t.Helper()
			must(t, os.WriteFile(at, []byte("x"), 0o644))
			pin(t, at)
		}),
	}
}

// dig makes a tree of folders so deep that no path names its end.
func dig(t *testing.T, at string, depth int) {
	t.Helper()
	must(t, os.Mkdir(at, 0o700))
	fd, err := unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, "d", 0o700))
		next, err := unix.Openat(fd, "d", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Close(fd))
		fd = next
	}
	must(t, unix.Close(fd))
}

// pin makes a file or folder immutable (chattr +i), until the test ends.
func pin(t *testing.T, at string) {
	t.Helper()
	set := func(flags int) error {
		f, err := os.Open(at)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	must(t, set(unix.STATX_ATTR_IMMUTABLE)) // FS_IMMUTABLE_FL has the same value (include/uapi/linux/fs.h)
	t.Cleanup(func() { _ = set(0) })
}

// TestHostileFolder plants everything under every name, in the pod's emptyDir and in its folder of the state, which somebody may
// have mounted into a container. ADD succeeds and the other files arrive, nothing hangs, DEL succeeds, and outside nothing was
// read or changed.
func TestHostileFolder(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"volume", "state"} {
		for _, a := range append(links(), things()...) {
			for _, name := range planted() {
				t.Run(where+"/"+a.name+"/"+name, func(t *testing.T) {
					t.Parallel()
					n := newNode(t, "podfabric")
					o := outsidetest.New(t, filepath.Dir(n.store.Root))
					folder := n.volume
					if where == "state" {
						folder = filepath.Join(n.store.Root, "pods", uid)
						must(t, os.MkdirAll(folder, 0o755))
					}
					a.plant(t, filepath.Join(folder, name), o)
					o.Look(t)
					n.survives(t, folder, name, a.arrives)
					if a.linked != "" {
						o.Unchanged(t, a.linked)
						return
					}
					o.Unchanged(t)
				})
			}
		}
	}
}

// survives puts a hint and drops it.
func (n node) survives(t *testing.T, folder, name string, arrives bool) {
	t.Helper()
	begun := time.Now()
	warnings := n.put(t, attachment(1, "10.1.0.5/24"))
	empty := strings.HasPrefix(name, ".") && !arrives && len(warnings) == 0 // an empty folder in a temporary file's place is removed
	if (len(warnings) == 0) != arrives && !empty {
		t.Errorf("warnings %q", warnings)
	}
	for _, w := range warnings {
		if strings.Contains(w, "no such file") {
			t.Errorf("warning %q", w)
		}
	}
	for _, file := range []string{"nccl.conf", "fabric.json"} {
		info, err := os.Lstat(filepath.Join(folder, file))
		if strings.HasSuffix(name, file) && !arrives && !empty {
			continue
		}
		if err != nil || info.Mode() != 0o644 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	n.drop(t, attachment(1))
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestTreeDeeperThanDescriptors: a pod's folder in the state that holds a tree deeper than this process may open files keeps no DEL
// from its end.
func TestTreeDeeperThanDescriptors(t *testing.T) {
	n := newNode(t, "podfabric")
	folder := filepath.Join(n.store.Root, "pods", uid)
	must(t, os.MkdirAll(folder, 0o755))
	dig(t, filepath.Join(folder, "deep"), 600)
	n.put(t, attachment(1, "10.1.0.5/24"))
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) })
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 300, Max: was.Max}))
	n.drop(t, attachment(1))
	if _, err := os.Lstat(filepath.Join(n.store.Root, "fragments", uid)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the part is there: %v", err)
	}
}

// TestWholeFolderOfPods: who mounts the folder of all pods into one can only reach other pods' hints.
func TestWholeFolderOfPods(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	o := outsidetest.New(t, filepath.Dir(n.store.Root))
	claims := filepath.Join(n.store.Root, "claims")
	must(t, os.MkdirAll(claims, 0o700))
	must(t, os.MkdirAll(filepath.Join(n.store.Root, "pods"), 0o755))
	must(t, os.Symlink("../claims", filepath.Join(n.store.Root, "pods", uid)))
	o.Look(t)
	if warnings := n.put(t, attachment(1, "10.1.0.5/24")); len(warnings) != 1 {
		t.Errorf("warnings %q", warnings)
	}
	n.drop(t, attachment(1))
	o.Unchanged(t)
	if left, err := os.ReadDir(claims); err != nil || !cmp.Equal(len(left), 0) {
		t.Errorf("claims hold %v, %v", left, err)
	}
}
