// SPDX-License-Identifier: Apache-2.0

// Package outsidetest makes a tree of files beside a pod's volume that nothing may read, write, make something in, or change in any
// way, and sees whether anything did.
package outsidetest

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

// Tree is such a tree.
type Tree struct {
	Dir  string
	want map[string]string
}

// New makes the tree dir/outside. Every file in it was read last before it was written, so that the kernel notes the next time
// that one is read, with relatime too (mount(8)).
func New(t *testing.T, dir string) *Tree {
	t.Helper()
	o := &Tree{Dir: filepath.Join(dir, "outside")}
	for _, name := range []string{"folder", "folder/below"} {
		must(t, os.MkdirAll(filepath.Join(o.Dir, name), 0o755))
	}
	for name, mode := range map[string]fs.FileMode{
		"file": 0o644, "secret": 0o600, "program": 0o755 | fs.ModeSetuid, "folder/nccl.conf": 0o644, "folder/fabric.json": 0o600, "folder/below/file": 0o444,
		"folder/.podfabric-nccl.conf": 0o644, "folder/.podfabric-fabric.json": 0o644,
	} {
		must(t, os.WriteFile(filepath.Join(o.Dir, name), []byte("NCCL_NET_PLUGIN=/outside.so "+name+"\n"), 0o600))
		must(t, os.Chmod(filepath.Join(o.Dir, name), mode))
	}
	must(t, filepath.WalkDir(o.Dir, func(path string, _ fs.DirEntry, err error) error {
		must(t, err)
		return os.Chtimes(path, time.Now().Add(-72*time.Hour), time.Now())
	}))
	return o
}

// File gives a path in the tree.
func (o *Tree) File(name string) string { return filepath.Join(o.Dir, name) }

// Look remembers the tree as it is now, links that the pod made to its files included.
func (o *Tree) Look(t *testing.T) {
	t.Helper()
	o.want = o.state(t)
}

// Unchanged compares everything. nlink and the time of change of a file that the pod has linked into its volume change when the
// link goes; linked names those.
func (o *Tree) Unchanged(t *testing.T, linked ...string) {
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
		if text, err := os.ReadFile(o.File(name)); err == nil && string(text) != "NCCL_NET_PLUGIN=/outside.so "+name+"\n" {
			t.Errorf("%s holds %q", name, text)
		}
	}
}

// state lists every file without reading one.
func (o *Tree) state(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	var walk func(name string)
	walk = func(name string) {
		var st unix.Stat_t
		must(t, unix.Lstat(o.File(name), &st))
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
func (o *Tree) entries(t *testing.T, name string) []string {
	t.Helper()
	fd, err := unix.Open(o.File(name), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOATIME|unix.O_CLOEXEC, 0)
	must(t, err)
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	must(t, err)
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Same tells whether the tree is as it was, without a word.
func (o *Tree) Same(t *testing.T) bool {
	t.Helper()
	return cmp.Equal(o.want, o.state(t))
}
