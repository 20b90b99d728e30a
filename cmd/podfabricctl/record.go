// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/podfabric/podfabric/plugin/kernel"
)

// recorder is what this verb needs of a node.
type recorder interface {
	Sysfs() (*os.Root, error)
	Snapshot(ctx context.Context) (kernel.Snapshot, error)
	Privileged() bool
}

// Sysfs opens the host's sysfs.
func (m *machine) Sysfs() (*os.Root, error) {
	root, err := os.OpenRoot(m.kernel.Sysfs)
	if err != nil {
		return nil, fmt.Errorf("open sysfs: %w", err)
	}
	return root, nil
}

// Snapshot reads what netlink says.
func (m *machine) Snapshot(ctx context.Context) (kernel.Snapshot, error) {
	return m.kernel.Snapshot(ctx)
}

func newRecord(n recorder, s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "record",
		Short: "write what sysfs and netlink say of this node's devices, anonymised, for bug reports and tests",
		Long: "record writes a txtar archive to standard output: the files of sysfs that podfabric reads, the list of symbolic links between\n" +
			"them, and netlink.json. MACs, GUIDs and IP addresses are replaced, each by the same value wherever it stands; PCI addresses,\n" +
			"device and driver names stay. Nothing of pods, processes or other namespaces is in it. Read it before you give it away.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !n.Privileged() {
				return errRoot
			}
			text, err := tapeOf(cmd.Context(), n)
			if err != nil {
				return err
			}
			if _, err := s.out.Write(text); err != nil {
				return fmt.Errorf("write the record: %w", err)
			}
			return nil
		},
	}
}

// tapeOf makes the archive.
func tapeOf(ctx context.Context, n recorder) ([]byte, error) {
	root, err := n.Sysfs()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	t := &tape{root: root, mask: newMask(), files: map[string]string{}, links: map[string]string{}}
	if err = t.functions(); err != nil {
		return nil, err
	}
	if err = t.classes(); err != nil {
		return nil, err
	}
	snap, err := n.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	facts, err := json.MarshalIndent(t.netlink(snap), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode netlink facts: %w", err)
	}
	return t.archive(facts), nil
}

// tape collects what is recorded.
type tape struct {
	root  *os.Root
	mask  *mask
	files map[string]string // by path below /sys
	links map[string]string // target by path
	dirs  []string          // recorded functions, as real paths
}

const pciDir = "bus/pci/devices"

// functions records network functions and those with RDMA devices.
func (t *tape) functions() error {
	names, err := t.list(pciDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		link := path.Join(pciDir, name)
		dir, err := t.real(link)
		if err != nil {
			continue // unplugged meanwhile
		}
		class, _ := t.read(path.Join(dir, "class"))
		verbs, err := t.list(path.Join(dir, "infiniband_verbs"))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(class, "0x02") && len(verbs) == 0 {
			continue
		}
		t.dirs = append(t.dirs, dir)
		t.link(link)
		for _, pattern := range []string{"driver", "physfn", "virtfn*"} {
			t.each(path.Join(dir, pattern), t.link)
		}
		for _, pattern := range []string{"class", "vendor", "device", "numa_node", "sriov_totalvfs", "sriov_numvfs", "net/*/mtu", "net/*/phys_port_name"} {
			t.each(path.Join(dir, pattern), t.file)
		}
		t.rdma(dir)
	}
	return nil
}

// rdma records the RDMA and verbs devices below a directory.
func (t *tape) rdma(dir string) {
	for _, pattern := range []string{
		"infiniband/*/node_guid", "infiniband/*/ports/*/link_layer", "infiniband/*/ports/*/state", "infiniband/*/ports/*/rate",
		"infiniband/*/ports/*/gids/*", "infiniband/*/ports/*/gid_attrs/types/*", "infiniband/*/ports/*/gid_attrs/ndevs/*", "infiniband_verbs/*/ibdev",
	} {
		t.each(path.Join(dir, pattern), t.file)
	}
}

// classes records the links of the classes to what was recorded, and the devices of software.
func (t *tape) classes() error {
	t.rdma("devices/virtual")
	for _, class := range []string{"net", "infiniband", "infiniband_verbs"} {
		names, err := t.list("class/" + class)
		if err != nil {
			return err
		}
		for _, name := range names {
			link := path.Join("class", class, name)
			dir, err := t.real(link)
			switch {
			case err != nil:
				t.file(link) // abi_version, which is a file
			case strings.HasPrefix(dir, "devices/virtual/infiniband"), slices.ContainsFunc(t.dirs, func(d string) bool {
				return strings.HasPrefix(dir, d+"/")
			}):
				t.link(link)
			}
		}
	}
	return nil
}

// each calls f with every path that fits a pattern, in which a star is a whole name or the end of one.
func (t *tape) each(pattern string, f func(string)) {
	before, after, found := strings.Cut(pattern, "*")
	if !found {
		if _, err := t.root.Lstat(pattern); err == nil {
			f(pattern)
		}
		return
	}
	dir, prefix := path.Split(before)
	names, err := t.list(dir)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			t.each(dir+name+after, f)
		}
	}
}

// file records one attribute. One that the kernel refuses to show, as the type of an empty GID, is left out; of a GID in use it
// is recorded as empty, which is how it is read.
func (t *tape) file(name string) {
	text, err := t.read(name)
	if err != nil {
		index := path.Base(name)
		port, _, attr := strings.Cut(name, "/gid_attrs/")
		gid, known := t.files[path.Join(port, "gids", index)]
		if !attr || !known || strings.Trim(gid, "0:") == "" {
			return
		}
	}
	switch {
	case path.Base(name) == "node_guid":
		text = t.mask.guid(text)
	case path.Base(path.Dir(name)) == "gids":
		text = t.mask.gid(text)
	}
	t.files[name] = text
}

func (t *tape) link(name string) {
	if to, err := t.root.Readlink(name); err == nil {
		t.links[name] = to
	}
}

// real follows one link as text, as all links of sysfs lead to real directories.
func (t *tape) real(link string) (string, error) {
	to, err := t.root.Readlink(link)
	if err != nil {
		return "", fmt.Errorf("read link %s: %w", link, err)
	}
	return path.Join(path.Dir(link), to), nil
}

// attrMax is the most that one attribute holds (a page).
const attrMax = 4096

// read gives an attribute on one line: a line of its own might be taken for the head of a file of the archive. It waits for
// nothing, whatever stands there.
func (t *tape) read(name string) (string, error) {
	f, err := t.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	defer f.Close()
	if stat, statErr := f.Stat(); statErr != nil || !stat.Mode().IsRegular() {
		return "", fmt.Errorf("read %s, which is no attribute: %w", name, errors.Join(fs.ErrInvalid, statErr))
	}
	text := make([]byte, attrMax)
	n, err := f.Read(text)
	if n == 0 && err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return printable(strings.TrimSpace(string(text[:n]))), nil
}

func (t *tape) list(dir string) ([]string, error) {
	f, err := t.root.OpenFile(path.Clean(dir), os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	slices.Sort(names)
	return names, nil
}
