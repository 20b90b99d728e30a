// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// outside is a tree beside the volume, on the same file system, that nothing may read, write, make something in, or change in
// any way.
type outside struct {
	dir  string
	want map[string]string
}

// newOutside makes the tree. Every file in it was read last before it was written, so that the kernel notes the next time
// that one is read, with relatime too (mount(8)).
func newOutside(t *testing.T, dir string) *outside {
	t.Helper()
	o := &outside{dir: filepath.Join(dir, "outside")}
	for _, name := range []string{"folder", "folder/below"} {
		must(t, os.MkdirAll(filepath.Join(o.dir, name), 0o755))
	}
	for name, mode := range map[string]fs.FileMode{
		"file": 0o644, "secret": 0o600, "program": 0o755 | fs.ModeSetuid, "folder/nccl.conf": 0o644, "folder/fabric.json": 0o600, "folder/below/file": 0o444,
		"folder/.podfabric-nccl.conf": 0o644, "folder/.podfabric-fabric.json": 0o644,
	} {
		must(t, os.WriteFile(filepath.Join(o.dir, name), []byte("NCCL_NET_PLUGIN=/outside.so "+name+"\n"), 0o600))
		must(t, os.Chmod(filepath.Join(o.dir, name), mode))
	}
	must(t, filepath.WalkDir(o.dir, func(path string, _ fs.DirEntry, err error) error {
		must(t, err)
		return os.Chtimes(path, time.Now().Add(-72*time.Hour), time.Now())
	}))
	return o
}

// file gives a path in the tree.
func (o *outside) file(name string) string { return filepath.Join(o.dir, name) }

// look remembers the tree as it is now, links that the pod made to its files included.
func (o *outside) look(t *testing.T) {
	t.Helper()
	o.want = o.state(t)
}

// unchanged compares everything. nlink and the time of change of a file that the pod has linked into its volume change when the
// link goes; linked names those.
func (o *outside) unchanged(t *testing.T, linked ...string) {
	t.Helper()
	got := o.state(t)
	for _, name := range linked {
		for _, m := range []map[string]string{got, o.want} {
			before, _, _ := strings.Cut(m[name], " nlink")
			m[name] = before
		}
	}
	if diff := cmp.Diff(o.want, got); diff != "" {
		t.Errorf("outside of the volume (-before +after):\n%s", diff)
	}
	for name := range got {
		if text, err := os.ReadFile(o.file(name)); err == nil && string(text) != "NCCL_NET_PLUGIN=/outside.so "+name+"\n" {
			t.Errorf("%s holds %q", name, text)
		}
	}
}

// state lists every file without reading one.
func (o *outside) state(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	var walk func(name string)
	walk = func(name string) {
		var st unix.Stat_t
		must(t, unix.Lstat(o.file(name), &st))
		list[name] = fmt.Sprintf("mode %o owner %d:%d inode %d size %d mtime %v atime %v nlink %d ctime %v",
			st.Mode, st.Uid, st.Gid, st.Ino, st.Size, st.Mtim, st.Atim, st.Nlink, st.Ctim)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return
		}
		for _, entry := range o.entries(t, name) {
			walk(filepath.Join(name, entry))
		}
	}
	walk(".")
	return list
}

// entries lists a folder without a trace.
func (o *outside) entries(t *testing.T, name string) []string {
	t.Helper()
	fd, err := unix.Open(o.file(name), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOATIME|unix.O_CLOEXEC, 0)
	must(t, err)
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	must(t, err)
	return names
}

// TestOutsideNotices: each way to touch the tree is seen. Without it the tests below would prove nothing.
func TestOutsideNotices(t *testing.T) {
	t.Parallel()
	for name, touch := range map[string]func(o *outside) error{
		"read":   func(o *outside) error { _, err := os.ReadFile(o.file("file")); return err },
		"list":   func(o *outside) error { _, err := os.ReadDir(o.file("folder")); return err },
		"write":  func(o *outside) error { return os.WriteFile(o.file("file"), []byte("x"), 0) },
		"chmod":  func(o *outside) error { return os.Chmod(o.file("file"), 0o600) },
		"make":   func(o *outside) error { return os.WriteFile(o.file("folder/new"), nil, 0o600) },
		"remove": func(o *outside) error { return os.Remove(o.file("folder/nccl.conf")) },
		"link":   func(o *outside) error { return os.Link(o.file("file"), o.file("../link")) },
		"rename": func(o *outside) error { return os.Rename(o.file("file"), o.file("secret")) },
		"make and remove": func(o *outside) error {
			return first(os.Mkdir(o.file("folder/new"), 0o700), os.Remove(o.file("folder/new")))
		},
	} {
		o := newOutside(t, t.TempDir())
		o.look(t)
		if got := o.state(t); !cmp.Equal(o.want, got) {
			t.Fatalf("a look changes the tree: %s", cmp.Diff(o.want, got))
		}
		must(t, touch(o))
		if cmp.Equal(o.want, o.state(t)) {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}

// first gives the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
