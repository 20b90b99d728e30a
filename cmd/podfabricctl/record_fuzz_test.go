// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs/sysfstest"
)

// FuzzRecord: with anything in the place of a file or link of sysfs, and any name for a netdev, the record is made in time, its files
// are those that were read and no text of one made another, nothing from outside the tree is in it, and it prints.
func FuzzRecord(f *testing.F) {
	dir := sysfstest.Extract(f, "../../rdmans/sysfs/testdata/mlx5-node.txtar")
	canary := filepath.Join(filepath.Dir(dir), "canary")
	must(f, os.WriteFile(canary, []byte("canary"), 0o600))
	spots := []string{}
	must(f, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			spots = append(spots, path)
		}
		return err
	}))
	for i, text := range []string{
		"", "a\n-- evil --\nb", "-- evil --\n", "\x1b[2J\u202e\xff", "../../../canary", "/proc/self/root", "0x02", "..", strings.Repeat("x", 9000), "02:00:00:00:00:01", "enxb8cef6123456",
	} {
		for kind := range uint8(4) {
			f.Add(uint16(i*11), kind, text, "net\x1b[2J")
		}
	}
	f.Fuzz(func(t *testing.T, spot uint16, kind uint8, text, netdev string) {
		path := spots[int(spot)%len(spots)]
		must(t, os.Rename(path, dir+"-kept"))
		defer func() {
			must(t, os.RemoveAll(path))
			must(t, os.Rename(dir+"-kept", path))
		}()
		switch kind % 4 {
		case 0:
			_ = os.WriteFile(path, []byte(text), 0o600)
		case 1:
			_ = os.Symlink(text, path)
		case 2:
			_ = syscall.Mkfifo(path, 0o600)
		}
		alarm := time.AfterFunc(3*time.Minute, func() { panic("the recorder hangs") })
		defer alarm.Stop()
		n := &recordedNode{dir: dir, snap: kernel.Snapshot{NetNS: map[string]kernel.NetNSState{
			kernel.HostNS: {Links: map[string]kernel.LinkState{netdev: {Parent: bus.PCI(fn(2))}}},
		}}}
		got, err := tapeOf(t.Context(), n)
		if err != nil {
			return
		}
		archive := txtar.Parse(got)
		names := map[string]bool{}
		for _, file := range archive.Files {
			if names[file.Name] || !filepath.IsLocal(file.Name) || strings.Contains(file.Name, "evil") {
				t.Errorf("file %q", file.Name)
			}
			names[file.Name] = true
		}
		if !names["symlinks"] || !names["netlink.json"] || archive.Files[0].Name != "symlinks" {
			t.Errorf("files %v", names)
		}
		if strings.Contains(string(got), "canary") && !strings.Contains(text, "canary") {
			t.Error("it holds what stands outside the tree")
		}
		if i := slices.IndexFunc([]rune(string(archive.Files[0].Data)), func(r rune) bool { return r != '\n' && r < ' ' || r == 0x202e || r == 0x7f }); i >= 0 {
			t.Errorf("symlinks do not print: %q", archive.Files[0].Data)
		}
	})
}
