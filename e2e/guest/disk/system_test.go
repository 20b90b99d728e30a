// SPDX-License-Identifier: Apache-2.0

//go:build lab

package disk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

const fakeipam = "/var/lib/fakeipam"

// small puts the state folder on a file system of its own until the test ends, and hides what was there.
func small(t *testing.T) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(cni.StateDir, 0o755), unix.Mount("tmpfs", cni.StateDir, "tmpfs", 0, "size=256k,nr_inodes=100,mode=755")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(cni.StateDir, 0); err != nil {
			t.Error(err)
		}
	})
}

func remount(t *testing.T, flags uintptr) {
	t.Helper()
	// A lock's file is open for writing for as long as it is held.
	node.Wait(t, "nobody writes", func() bool { return unix.Mount("", cni.StateDir, "", unix.MS_REMOUNT|flags, "") == nil })
}

// full lets nothing more be written; what is given back makes room again.
func full(t *testing.T, of string) func() {
	t.Helper()
	dir := filepath.Join(cni.StateDir, "filler")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if of == "bytes" {
		var f *os.File
		f, err = os.Create(filepath.Join(dir, "0"))
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		_ = f.Close()
	}
	for n := 1; of == "inodes" && err == nil; n++ {
		err = unix.Mknod(fmt.Sprintf("%s/%d", dir, n), unix.S_IFREG|0o600, 0)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() { _ = os.RemoveAll(dir) }
}

// refused wants an ADD or DEL to fail with code 5 and the texts.
func (p *pod) refused(t *testing.T, verb string, texts ...string) {
	t.Helper()
	_, failure := p.Run(t, verb)
	if failure == nil {
		t.Errorf("%s succeeded", verb)
		return
	}
	for _, text := range append(texts, cni.StateDir) {
		if failure.Code != 5 || !strings.Contains(failure.Text(), text) {
			t.Errorf("%s: code %d: %s; wanted code 5 and %q", verb, failure.Code, failure.Text(), text)
		}
	}
}

// TestFull: nothing can be written, but a device comes home, and its record goes.
func TestFull(t *testing.T) {
	for _, of := range []string{"bytes", "inodes"} {
		t.Run(of, func(t *testing.T) {
			small(t)
			before := cni.Look(t)
			has, wants := newPod(t, "has08", node.VF(t, 1, 0), ranges), newPod(t, "wants09", node.VF(t, 2, 0), ranges)
			has.Add(t)
			free := full(t, of)
			wants.refused(t, "ADD", "free space or inodes")
			has.Del(t)
			has.gone(t, "DEL on a full disk")
			free()
			has.Add(t)
			has.Del(t)
			before.Unchanged(t)
		})
	}
}

// TestReadOnly: while a DEL, or an ADD, is at work the file system becomes read-only. The device comes home; what could not be written
// off is said, and the next DEL does so.
func TestReadOnly(t *testing.T) {
	small(t)
	before := cni.Look(t)
	p := newPod(t, "turns10", node.VF(t, 1, 0), ranges)
	p.Add(t)
	remount(t, unix.MS_RDONLY)
	p.refused(t, "DEL", "read-write")
	if !p.home() {
		t.Errorf("after DEL on a read-only disk: %q, %q", node.Netdev(p.vf), node.IBDev(p.vf))
	}
	newPod(t, "wants11", node.VF(t, 2, 0), ranges).refused(t, "ADD", "read-write")
	remount(t, 0)
	p.Del(t)
	before.Unchanged(t)

	hang := filepath.Join(fakeipam, "hang")
	if err := errors.Join(os.MkdirAll(fakeipam, 0o755), os.WriteFile(hang, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	p = newPod(t, "turns12", node.VF(t, 1, 0), `{"type":"fakeipam"}`)
	add := make(chan *cni.Failure, 1)
	go func() {
		_, failure := p.Run(t, "ADD")
		add <- failure
	}()
	node.Wait(t, "the IPAM plugin is asked", func() bool {
		_, err := os.Stat(filepath.Join(fakeipam, p.ContainerID+"-net1"))
		return err == nil
	})
	remount(t, unix.MS_RDONLY)
	if err := os.Remove(hang); err != nil {
		t.Fatal(err)
	}
	if failure := <-add; failure == nil || failure.Code != 5 || !strings.Contains(failure.Text(), "read-write") {
		t.Errorf("ADD: %+v", failure)
	}
	if !p.home() {
		t.Errorf("after ADD on a disk that turned read-only: %q, %q", node.Netdev(p.vf), node.IBDev(p.vf))
	}
	remount(t, 0)
	p.Del(t)
	if _, err := os.Stat(filepath.Join(fakeipam, p.ContainerID+"-net1")); err == nil {
		t.Error("the IPAM plugin still holds an address")
	}
	before.Unchanged(t)
}

// TestStateFolder: what may stand in the place of the state folder.
func TestStateFolder(t *testing.T) {
	const other = "/run/elsewhere"
	before := cni.Look(t)
	vf := node.VF(t, 1, 0)
	tests := []struct {
		name    string
		make    func() error
		refused string // empty: it serves
	}{
		{"nothing", func() error { return nil }, ""},
		{"a file", func() error { return os.WriteFile(cni.StateDir, nil, 0o600) }, "remove what stands there"},
		{"a link to nothing", func() error { return os.Symlink(other, cni.StateDir) }, "look at the file system"},
		{"a link to a file", func() error {
			return errors.Join(os.WriteFile(other, nil, 0o600), os.Symlink(other, cni.StateDir))
		}, "remove what stands there"},
		{"a link to a folder", func() error { return errors.Join(os.Mkdir(other, 0o755), os.Symlink(other, cni.StateDir)) }, ""},
		{"a folder that nobody may enter", func() error { return os.Mkdir(cni.StateDir, 0) }, ""},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(cni.StateDir), os.RemoveAll(other), tt.make()); err != nil {
				t.Fatal(err)
			}
			p := newPod(t, fmt.Sprintf("place2%d", i), vf, ranges)
			if tt.refused != "" {
				p.refused(t, "ADD", tt.refused)
				_ = os.Remove(cni.StateDir)
			} else {
				p.Add(t)
			}
			p.Del(t)
			if !p.home() {
				t.Errorf("at home: %q, %q", node.Netdev(vf), node.IBDev(vf))
			}
			if err := errors.Join(os.RemoveAll(cni.StateDir), os.RemoveAll(other)); err != nil {
				t.Fatal(err)
			}
			before.Unchanged(t)
		})
	}
}
