// SPDX-License-Identifier: Apache-2.0

package sysfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
	"github.com/podfabric/podfabric/rdmans/sysfs"
	"github.com/podfabric/podfabric/rdmans/sysfs/sysfstest"
)

// secret stands in a file outside the tree; nothing that is read may hold it.
const secret = "7 the canary outside"

// spots are the files and links of a tree, sorted, as paths below it.
func spots(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// The kinds of what plant puts in a file's place.
const (
	asFile = iota
	asLink
	asFolder
	asFifo
	asHuge
	asNothing
	asEntry // a file of that name beside
	kinds
)

// plant replaces what is at path, keeps it at kept, and gives what undoes that. What the file system refuses, such as a name with a
// slash, is not planted.
func plant(t testing.TB, path, kept string, kind uint8, text string) func() {
	t.Helper()
	if kind == asEntry {
		beside := filepath.Join(filepath.Dir(path), filepath.Base(text))
		if _, err := os.Lstat(beside); err == nil || os.WriteFile(beside, []byte(text), 0o600) != nil {
			return func() {}
		}
		return func() { _ = os.Remove(beside) }
	}
	if os.Rename(path, kept) != nil {
		return func() {}
	}
	switch kind {
	case asFile:
		_ = os.WriteFile(path, []byte(text), 0o600)
	case asLink:
		_ = os.Symlink(text, path)
	case asFolder:
		_ = os.MkdirAll(filepath.Join(path, filepath.Base(text)), 0o700)
	case asFifo:
		_ = syscall.Mkfifo(path, 0o600)
	case asHuge:
		_ = os.WriteFile(path, []byte(text), 0o600)
		_ = os.Truncate(path, 1<<40)
	case asNothing:
	}
	return func() {
		if err := errors.Join(os.RemoveAll(path), os.Rename(kept, path)); err != nil {
			t.Fatal(err)
		}
	}
}

// look reads all that the package reads, and gives every text that came out and every error.
func look(f *sysfs.FS) (string, error) {
	var out []any
	var errs []error
	add := func(v any, err error) {
		out, errs = append(out, v), append(errs, err)
	}
	call(add, f.Functions)
	call(add, f.SFs)
	for _, a := range []string{"0000:3b:00.0", "0000:3b:00.2", "0000:3b:01.4"} {
		p, _ := pci.Parse(a)
		call(add, func() (sysfs.Function, error) { return f.Function(p) })
		call(add, func() (string, error) { return f.Path(bus.PCI(p)) })
	}
	call(add, func() (pci.Addr, error) { return f.Below(bus.ID{Aux: "mlx5_core.sf.4"}) })
	devices, err := f.RDMADevices()
	add(devices, err)
	call(add, f.Uverbs)
	for _, d := range append(devices, "mlx5_0", "../../secret", "..") {
		call(add, func() (string, error) { return f.NodeGUID(d) })
		call(add, func() (string, error) { return f.LinkLayer(d) })
		call(add, func() ([]sysfs.Port, error) { return f.Ports(d) })
		call(add, func() (bus.ID, error) { return f.Parent(d) })
	}
	for _, n := range []string{"ens1f0np0", "../../secret"} {
		call(add, func() (bus.ID, error) { return f.NetDevice(n) })
		call(add, func() (bool, error) { return f.Representor(n) })
	}
	call(add, func() (string, error) { return f.Uplink([]string{"ens1f0np0", "ens1f0npf0vf0"}) })
	return fmt.Sprintf("%+v", out), errors.Join(errs...)
}

func call[T any](add func(any, error), read func() (T, error)) {
	v, err := read()
	add(v, err)
}

// FuzzTree: with anything in the place of any two files or links of a tree, everything is read in time, nothing from outside the
// tree comes back, no text is longer than an attribute can be, and no error is misread by Multus or breaks a line of its own.
func FuzzTree(f *testing.F) {
	type seed struct {
		spot uint16
		kind uint8
		text string
	}
	texts := []string{
		"", "\n", "0", "-1", "99999999999999999999", "0x", "4: ACTIVE", "4:", ": \x1b[2J", "Gb/sec", "1e400 Gb/sec", "NaN Gb/sec", "-inf Gb/sec (", "fe80::1%eth0",
		"::ffff:10.0.0.1", "\x00\xff\xfe", "../../../secret", "/etc/passwd", "..", ".", "/", "virtfn99999999999999999999", "virtfn-1", "uverbs-1", "uverbs+7",
		"0000:3b:00.0", "mlx5_core.sf.4", strings.Repeat("9", 5000), strings.Repeat("../", 1300), "a\nb",
	}
	for i, text := range texts {
		for kind := range uint8(kinds) {
			a := seed{uint16(i * 7), kind, text}
			f.Add(a.spot, a.kind, a.text, a.spot+13, (kind+3)%kinds, texts[(i+5)%len(texts)])
		}
	}
	trees := []string{sysfstest.Extract(f, node), sysfstest.Extract(f, "testdata/mlx5-sf.txtar")}
	var open []*sysfs.FS
	var all [][]string
	for _, dir := range trees {
		if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "secret"), []byte(secret), 0o600); err != nil {
			f.Fatal(err)
		}
		fsys, err := sysfs.Open(dir)
		if err != nil {
			f.Fatal(err)
		}
		open, all = append(open, fsys), append(all, spots(f, dir))
	}
	f.Fuzz(func(t *testing.T, spot uint16, kind uint8, text string, spot2 uint16, kind2 uint8, text2 string) {
		which := int(spot>>8) % len(trees)
		at := func(n uint16) string { return filepath.Join(trees[which], all[which][int(n&0xff)%len(all[which])]) }
		undo := plant(t, at(spot), trees[which]+"-kept1", kind%kinds, text)
		undo2 := plant(t, at(spot2), trees[which]+"-kept2", kind2%kinds, text2)
		type answer struct {
			text string
			err  error
		}
		done := make(chan answer, 1)
		go func() {
			text, err := look(open[which])
			done <- answer{text, err}
		}()
		select {
		case got := <-done:
			judge(t, got.text, got.err)
		case <-time.After(3 * time.Minute):
			panic("reading hangs") // and would go on doing so behind every further input
		}
		undo2()
		undo()
	})
}

func judge(t *testing.T, text string, err error) {
	t.Helper()
	if strings.Contains(text, secret) || err != nil && strings.Contains(err.Error(), secret) {
		t.Error("a file outside the tree was read")
	}
	if len(text) > 1<<20 {
		t.Errorf("%d bytes came out of a tree of small files", len(text))
	}
	if err == nil {
		return
	}
	if strings.Contains(err.Error(), syscall.ENOENT.Error()) {
		t.Errorf("text that Multus takes for done: %v", err)
	}
}
