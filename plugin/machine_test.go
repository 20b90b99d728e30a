// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// machine is a node in memory with the stores that plugin.New makes in a folder of its own. A bystander pod has VF 2 all the
// time, so that what a test does to others shows.
type machine struct {
	*attachtest.Kernel
	plugin *plugin.Plugin
	ipam   *otherIPAM
	trap   *trap
	dir    string // of run/, the state folder, and kubelet/
	log    *output
	ticks  atomic.Int64
}

// tick is what the machine's clock goes on by with every look at it, so that a bounded wait of seconds takes few looks.
const tick = 250 * time.Millisecond

func newMachine(t testing.TB, mode attach.Mode) *machine {
	t.Helper()
	return newMachineIn(t, memory(t), mode)
}

// newMachineIn keeps its files in a folder of the caller's.
func newMachineIn(t testing.TB, dir string, mode attach.Mode) *machine {
	t.Helper()
	m := &machine{Kernel: attachtest.New(mode), ipam: &otherIPAM{held: map[string]string{}}, dir: dir, log: &output{}}
	must(t, os.MkdirAll(dir, 0o755))
	m.trap = &trap{at: -1, kernel: m.Kernel}
	must(t, os.Mkdir(filepath.Join(m.dir, "run"), 0o755))
	must(t, os.Mkdir(filepath.Join(m.dir, "kubelet"), 0o755))
	pf := attachtest.PF{PCI: vfAddr(0).PCI, Link: "ens1f0", MTU: 9000}
	if mode != attach.NoRDMA {
		pf.RDMA = "mlx5_0"
	}
	m.AddPF(pf)
	for n := 2; n <= 7; n++ {
		vf := attachtest.VF{ID: vfAddr(n), PF: vfAddr(0).PCI, Number: n - 2, Link: fmt.Sprintf("ens1f0v%d", n-2), Up: n == upVF}
		if n != softVF && mode != attach.NoRDMA {
			vf.RDMA = fmt.Sprintf("mlx5_%d", n)
		}
		m.AddVF(vf)
	}
	m.plugin = m.process()
	m.pod("bystander")
	bystander := request{pod: "bystander", dev: 2}
	if mode == attach.NoRDMA {
		bystander.more = rdmaOff
	}
	m.mustAdd(t, bystander)
	m.furnish(mode)
	return m
}

// furnish adds what attachments other than a VF's are made of.
func (m *machine) furnish(mode attach.Mode) {
	rdma := func(name string) string {
		if mode == attach.NoRDMA {
			return ""
		}
		return name
	}
	m.AddPF(attachtest.PF{PCI: otherPF().PCI, Link: "ens2f0", MTU: 9000, RDMA: rdma("mlx5_9")})
	m.AddVLAN("ens1f0", "ens1f0.100", 100)
	m.AddSF(attachtest.SF{ID: subFunction(), PF: vfAddr(0).PCI, Link: "enp59s0f0s4", RDMA: rdma("mlx5_8")})
	m.AddVF(attachtest.VF{ID: vfioVF(), PF: vfAddr(0).PCI, Number: 6, Driver: "vfio-pci"})
}

// otherPF is a card of its own, with a link ens2f0 and no VFs.
func otherPF() bus.ID { return bus.PCI(pci.Addr{Bus: 0x3c}) }

func subFunction() bus.ID { return bus.ID{Aux: "mlx5_core.sf.4"} }

// vfioVF is a VF for a program of the pod.
func vfioVF() bus.ID { return bus.PCI(pci.Addr{Bus: 0x3b, Device: 1}) }

// memory makes a folder that is on tmpfs if there is one, as /run is: fsync costs nothing there.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "podfabric-test-") //nolint:usetesting // its folders are on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// upVF is up at home.
const upVF = 4

// process is the plugin as a new process of it would be: the same machine and folder, nothing else in common.
func (m *machine) process(settings ...string) *plugin.Plugin { return m.trapped(m.trap, settings...) }

// trapped is a process that has a trap of its own.
func (m *machine) trapped(tr *trap, settings ...string) *plugin.Plugin {
	settings = append(settings, `"version":1`, fmt.Sprintf(`"kubeletRoot":%q`, filepath.Join(m.dir, "kubelet")))
	text := "{" + strings.Join(settings, ",") + "}"
	p := plugin.New(plugin.Config{
		Dir: filepath.Join(m.dir, "run"), Stderr: m.log, Version: "v0.1.0",
		Node: func() (netconf.Node, error) { return netconf.ParseNode([]byte(text)) },
		Open: func(ctx context.Context, netns string) (plugin.Session, error) {
			s, err := through(tr, "open "+netns, func() (*attachtest.Session, error) { return m.Open(ctx, netns) },
				func(s *attachtest.Session) { _ = s.Close() })
			return &session{s, tr}, err
		},
	})
	p.Now = func() time.Time {
		return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Add(time.Duration(m.ticks.Add(1)) * tick)
	}
	if store, ok := p.Leases.(lease.Store); ok {
		store.Random = func(uint64) uint64 { return 0 } // so that one machine is like another
		p.Leases = &trappedLeases{store, tr}
	}
	p.Delegate = &trappedIPAM{m.ipam, tr}
	lock := p.Hints.Lock
	p.Hints.Lock = func(ctx context.Context, name, holder string) (func(), error) {
		return through(tr, "lock of the hint", func() (func(), error) { return lock(ctx, name, holder) }, func(release func()) { release() })
	}
	return p
}

// request is one attachment that a runtime asks for; the zero value of a field is what most tests want.
type request struct {
	pod     string
	ifname  string // "net1"
	dev     int    // function of the VF
	of      bus.ID // what it is made of, when it is not a VF of that number
	keys    string // what it is made of, instead of the device's ID
	network string // "rail0"
	version string // "1.1.0"
	ipam    string // addresses of 10.1.0.0/24 of this node
	more    string // keys, each with a comma before it
}

const (
	softOn  = `,"rdma":{"softRoCE":true}`
	rdmaOff = `,"rdma":{"mode":"off"}`
)

// Sections of ipam.
const (
	noIPAM    = `{}`
	v4Range   = `{"type":"range","ranges":[[{"subnet":"10.1.0.0/24","scope":"node"}]]}`
	v6Range   = `{"type":"range","ranges":[[{"subnet":"fd00:1::/64","scope":"node"}]]}`
	dualRange = `{"type":"range","routes":[{"dst":"10.0.0.0/8"},{"dst":"fd00::/16"}],"ranges":[
		[{"subnet":"10.1.0.0/24","gateway":"10.1.0.1","scope":"node"}],[{"subnet":"fd00:1::/64","gateway":"fd00:1::1","scope":"node"}]]}`
	dualStatic = `{"type":"static","routes":[{"dst":"10.0.0.0/8","gw":"10.1.0.1"}],
		"addresses":[{"address":"10.1.0.77/24","gateway":"10.1.0.1"},{"address":"fd00:1::77/64"}]}`
	oneAddress = `{"type":"range","ranges":[[{"subnet":"10.5.0.0/24","rangeStart":"10.5.0.5","rangeEnd":"10.5.0.5","scope":"node"}]]}`
	delegated  = `{"type":"other-ipam","of":"its own"}`
	// chainedIPAM is none: the plugin before gives addresses.
	chainedIPAM = "none"
)

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

func netnsOf(pod string) string { return "/run/netns/" + pod }

// uidOf is a UID as Kubernetes gives them.
func uidOf(pod string) string {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(pod)))
	return strings.Join([]string{sum[:8], sum[8:12], sum[12:16], sum[16:20], sum[20:32]}, "-")
}

func (r request) raw() netconf.Raw {
	keys := or(r.keys, fmt.Sprintf(`"deviceID":%q`, r.device()))
	if r.ipam != chainedIPAM {
		keys += `,"ipam":` + or(r.ipam, v4Range)
	}
	return netconf.Raw{
		Stdin: fmt.Appendf(nil, `{"cniVersion":%q,"name":%q,"type":"podfabric",%s%s}`,
			or(r.version, "1.1.0"), or(r.network, "rail0"), keys, r.more),
		ContainerID: "cid-" + r.pod, IfName: or(r.ifname, "net1"), NetNS: netnsOf(r.pod), Path: "/opt/cni/bin",
		Args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=team-a;K8S_POD_NAME=" + r.pod + ";K8S_POD_UID=" + uidOf(r.pod),
	}
}

// device is what it is made of, or what is below its master.
func (r request) device() bus.ID {
	if !r.of.IsZero() {
		return r.of
	}
	return vfAddr(r.dev)
}

func (r request) owner() attach.Owner {
	return attach.Owner{ContainerID: "cid-" + r.pod, IfName: or(r.ifname, "net1")}
}

// pod makes the namespace of a pod.
func (m *machine) pod(name string) { m.AddNetNS(netnsOf(name)) }

// volume gives a pod the emptyDir that hints are delivered to.
func (m *machine) volume(t testing.TB, pod string) string {
	t.Helper()
	dir := filepath.Join(m.dir, "kubelet/pods", uidOf(pod), "volumes/kubernetes.io~empty-dir/podfabric")
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

func (m *machine) add(t testing.TB, r request) error {
	t.Helper()
	_, err := m.plugin.Add(t.Context(), r.raw())
	return err
}

func (m *machine) mustAdd(t testing.TB, r request) {
	t.Helper()
	if err := m.add(t, r); err != nil {
		t.Fatalf("ADD of %s: %v", r.owner(), err)
	}
}

func (m *machine) del(t testing.TB, r request) error {
	t.Helper()
	return m.plugin.Del(t.Context(), r.raw())
}

func (m *machine) mustDel(t testing.TB, r request) {
	t.Helper()
	if err := m.del(t, r); err != nil {
		t.Fatalf("DEL of %s: %v", r.owner(), err)
	}
}

// gc asks for a GC that leaves nothing of network rail0 but the bystander and what is listed.
func (m *machine) gc(t testing.TB, valid ...request) error {
	t.Helper()
	return m.plugin.GC(t.Context(), gcOf(valid...))
}

// gcOf is what a runtime calls GC with.
func gcOf(valid ...request) netconf.Raw {
	list := []string{}
	for _, r := range append(valid, request{pod: "bystander"}) {
		list = append(list, fmt.Sprintf(`{"containerID":%q,"ifname":%q}`, r.owner().ContainerID, r.owner().IfName))
	}
	return netconf.Raw{
		Stdin: fmt.Appendf(nil, `{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","cni.dev/valid-attachments":[%s]}`,
			strings.Join(list, ",")),
		Path: "/opt/cni/bin",
	}
}

// where gives what Where does of a VF.
func (m *machine) where(dev int) [2]string { return m.Where(vfAddr(dev)) }

// vfs are the devices that no test's start has in a pod.
func vfs() []bus.ID { return []bus.ID{vfAddr(3), vfAddr(4), vfAddr(6), vfAddr(7)} }
