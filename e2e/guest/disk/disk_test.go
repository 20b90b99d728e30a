// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package disk_test breaks the disk below the plugin while it moves VFs: single system calls on files fail, the file system of
// /run/podfabric is full or read-only, folders are of the wrong kind. Package e2e/disk does so with every call of kind macvlan.
package disk_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// One VF of the first NIC has an RDMA device, and is one test's at a time; the others are for tests beside it, whose RDMA devices
// would shift its number.
//
//lab:boot pfs=2 vfs=4 mode=exclusive seconds=300 rdmasim=0000:01:00.0,0000:01:10.0 bin=./e2e/guest/fakeipam peers=plugins/host-local

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

const (
	uid      = "11111111-0000-4000-8000-0000000000"
	cniDir   = "/var/lib/cni"
	delegate = `{"type":"host-local","dataDir":"` + cniDir + `","ranges":[[{"subnet":"10.2.0.0/24"}]]}`
	ranges   = `{"type":"range","ranges":[[{"subnet":"10.1.0.0/24","scope":"node"}]]}`
)

// network is a configuration for a VF.
func network(vf, ipam string, more ...string) string {
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","deviceID":%q,"rdma":{"require":"no"},"ipam":%s%s}`,
		vf, ipam, strings.Join(more, ""))
}

// pod is an attachment of a VF to a pod of its own, with a volume.
type pod struct {
	cni.Call
	ns         *node.NS
	vf         string
	netdev, ib string // at home
}

func newPod(t *testing.T, id, vf, ipam string, more ...string) *pod {
	t.Helper()
	p := &pod{ns: node.NewNS(t), vf: vf, netdev: node.Netdev(vf), ib: node.IBDev(vf)}
	p.Call = cni.Call{Conf: network(vf, ipam, more...), ContainerID: id, NetNS: p.ns.Path, UID: uid + id[len(id)-2:]}
	p.Volume(t, "podfabric")
	return p
}

// home tells whether the VF is at home under its own names.
func (p *pod) home() bool { return node.Netdev(p.vf) == p.netdev && node.IBDev(p.vf) == p.ib }

// left lists what is still there of the attachment: the VF away, files that name it. Other attachments may come and go meanwhile.
func (p *pod) left(t *testing.T) []string {
	t.Helper()
	var left []string
	if !p.home() {
		left = append(left, fmt.Sprintf("%s is at home as %q and %q, not %q and %q", p.vf, node.Netdev(p.vf), node.IBDev(p.vf), p.netdev, p.ib))
	}
	for _, dir := range []string{cni.StateDir, cniDir} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(cni.StateDir, path)
			if d.IsDir() && (rel == "locks" || rel == "names") {
				return fs.SkipDir
			}
			target, _ := os.Readlink(path)
			text, _ := os.ReadFile(path)
			names := strings.Contains(path, p.UID) || strings.Contains(path, p.ContainerID) || strings.Contains(path, p.vf) ||
				strings.Contains(target, p.ContainerID+"/") || dir == cniDir && strings.Contains(string(text), p.ContainerID)
			if !d.IsDir() && names {
				left = append(left, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return left
}

// gone wants nothing to be left.
func (p *pod) gone(t *testing.T, when string) {
	t.Helper()
	if left := p.left(t); len(left) > 0 {
		t.Errorf("%s: left is\n%s", when, strings.Join(left, "\n"))
	}
}

// die takes the pod's namespace away and waits for the VF.
func (p *pod) die(t *testing.T) {
	t.Helper()
	p.ns.Kill(t)
	node.Wait(t, p.vf+" home", func() bool { return node.Netdev(p.vf) != "" && (p.ib == "" || node.IBDev(p.vf) != "") })
}

// patience is how long a call may take.
const patience = 90 * time.Second
