// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// What is, or has become, another's is left alone: here is what only a whole verb can get wrong.

// A program of the pod drives the VF, so that no namespace tells that the pod has it.
func TestGCLeavesTheVFOfALivingProgram(t *testing.T) {
	t.Parallel()
	k := named("VF of a program")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	start := m.state(t)
	m.mustAdd(t, k.request)
	before := m.state(t)
	must(t, m.gc(t))
	m.same(t, "GC of a living pod", before)
	m.KillNetNS(netnsOf("pod1"))
	must(t, m.gc(t))
	m.same(t, "GC of a dead pod", start)
}

// Links of other pods stay on a VF wherever it goes (seen on 6.18: a macvlan keeps its lower link over a move), and its pod would
// share it with theirs.
func TestSharedDevicesDoNotMove(t *testing.T) {
	t.Parallel()
	whole := named("device by its ID alone, delegate").request
	upper := func(master string) request {
		return request{pod: "pod2", keys: `"master":"` + master + `"`, more: rdmaOff}
	}
	for name, tc := range map[string]struct {
		r      request
		master string
		during bool // the other pod comes while this one waits for its address
	}{
		"VF":             {request{pod: "pod1", dev: 3}, "ens1f0v1", false},
		"VF, meanwhile":  {request{pod: "pod1", dev: 3, ipam: delegated}, "ens1f0v1", true},
		"PF":             {whole, "ens2f0", false},
		"PF, meanwhile":  {whole, "ens2f0", true},
		"PF, a dead pod": {named("device by name").request, "ens2f0", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("pod2")
			var before []string
			occupy := func(context.Context) (*types100.Result, error) {
				m.ipam.set(nil, nil)
				m.mustAdd(t, upper(tc.master))
				return nil, nil //nolint:nilnil // then the usual address
			}
			if tc.during {
				m.ipam.set(occupy, nil)
			} else {
				_, _ = occupy(t.Context())
				before = m.state(t)
			}
			if strings.HasSuffix(name, "a dead pod") {
				m.KillNetNS(netnsOf("pod2"))
				m.mustAdd(t, tc.r)
				return
			}
			answered(t, m.add(t, tc.r), 103, "net1 of pod team-a/pod2", "overrideGuards")
			if before != nil {
				m.same(t, "ADD", before)
			}
			if where := m.Where(tc.r.device())[0]; where != "host/"+tc.master {
				t.Errorf("netdev is at %s", where)
			}
		})
	}
}

// An address that cannot be given back keeps the record, and the runtime calls DEL again and again. By then the VF may be
// another program's.
func TestDelRestoresOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("other")
	r := request{
		pod: "pod1", dev: 3, keys: `"deviceID":"0000:3b:00.3","vlan":100`, ipam: delegated, more: `,"vf":{"flr":true}`,
	}
	m.mustAdd(t, r)
	m.ipam.set(nil, func(context.Context) error { return errors.New("not now") })
	if err := m.del(t, r); err == nil {
		t.Fatal("DEL without the address: no error")
	}
	theirs := m.VFState(vfAddr(3))
	theirs.VLAN = 200
	m.SetVFState(vfAddr(3), theirs)
	m.Give(vfAddr(3), netnsOf("other"), "net1")
	resets := m.Resets(vfAddr(3))
	if err := m.del(t, r); err == nil {
		t.Fatal("DEL without the address: no error")
	}
	m.ipam.set(nil, nil)
	m.mustDel(t, r)
	if got := m.VFState(vfAddr(3)); got != theirs || m.Resets(vfAddr(3)) != resets {
		t.Errorf("the other program's VF has %+v, want %+v, and was reset %d times", got, theirs, m.Resets(vfAddr(3))-resets)
	}
	if where := m.where(3); where[0] != netnsOf("other")+"/net1" {
		t.Errorf("it is at %v", where)
	}
	if _, err := m.plugin.Records.Load(r.owner()); !errors.Is(err, record.ErrNotFound) {
		t.Errorf("record: %v", err)
	}
}

// The names that a device had once find it where a pod left it, never under a name that its owner gave it since.
func TestDeviceByANameItHadOnce(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{`"device":"ens2f0"`, `"hwaddr":"02:54:00:3c:00:00"`} {
		m := newMachine(t, attach.Exclusive)
		m.pod("pod1")
		r := request{pod: "pod1", of: otherPF(), keys: keys}
		m.mustAdd(t, r)
		m.mustDel(t, r)
		m.SetLink(otherPF(), "02:54:00:3c:00:99", 0, true)
		m.RenameLink(otherPF(), "storage0")
		before := m.state(t)
		answered(t, m.add(t, r), 11, "which no link of the node is")
		m.same(t, "ADD of "+keys, before)
		m.RenameLink(otherPF(), "dev7") // as the kernel calls one whose name was taken
		if err := m.add(t, r); strings.Contains(keys, `"device"`) && err != nil {
			t.Error(err)
		}
	}
}

// A link that came into the pod while ADD waited is not the one that ADD was to make, whatever its name.
func TestUndoLeavesAForeignLink(t *testing.T) {
	t.Parallel()
	for kind, make := range map[string]func(*machine){
		"macvlan": func(m *machine) { m.MakeMacvlan(netnsOf("pod1"), "net1", "ens2f0") },
		"ipvlan":  func(m *machine) { m.MakeIpvlan(netnsOf("pod1"), "net1", "ens2f0") },
	} {
		m := newMachine(t, attach.Shared)
		m.pod("pod1")
		m.ipam.set(func(context.Context) (*types100.Result, error) {
			make(m)
			return nil, nil //nolint:nilnil // then the usual address
		}, nil)
		r := request{pod: "pod1", of: otherPF(), keys: `"link":"` + kind + `","master":"ens2f0"`, ipam: delegated}
		answered(t, m.add(t, r), 107, "net1")
		m.mustDel(t, r)
		if !strings.Contains(m.Dump(), "link "+netnsOf("pod1")+"/net1 ") {
			t.Errorf("the other's %s is gone", kind)
		}
	}
}

// An ADD that got no address has not given the VF to anyone, so there is nothing to reset.
func TestUndoOfNothingResetsNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	before := m.state(t)
	m.ipam.set(func(context.Context) (*types100.Result, error) { return nil, errors.New("full") }, nil)
	if err := m.add(t, request{pod: "pod1", dev: 3, ipam: delegated, more: `,"vf":{"flr":true}`}); err == nil {
		t.Fatal("no error")
	}
	if n := m.Resets(vfAddr(3)); n != 0 {
		t.Errorf("%d resets", n)
	}
	m.same(t, "ADD", before)
}

// igb takes no rate while its cable is out. The pod goes away all the same; its VF waits, and the next pod gets it clean.
func TestDelWhenTheDriverRefuses(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	before := m.state(t)
	r := request{pod: "pod1", dev: 3, keys: `"deviceID":"0000:3b:00.3","max_tx_rate":1000,"vlan":100`}
	next := request{pod: "pod2", dev: 3, ipam: noIPAM}
	m.mustAdd(t, r)
	m.RefuseVF(attach.VFRate, syscall.EINVAL)
	m.mustDel(t, r)
	m.mustDel(t, r)
	if got := m.stateOf(t, r); got != record.Returning {
		t.Errorf("record is in state %q", got)
	}
	if !m.log.has("WARN", "rate of vf 1") {
		t.Errorf("log:\n%s", m.log.text.String())
	}
	if got := m.VFState(vfAddr(3)); got.VLAN != 0 || got.MaxTxRate != 1000 {
		t.Errorf("the VF has %+v", got)
	}
	answered(t, m.add(t, next), 11, "rate of vf 1", "team-a/pod1")
	m.RefuseVF(attach.VFRate, nil)
	m.mustAdd(t, next)
	if got := m.VFState(vfAddr(3)); got.MaxTxRate != 0 {
		t.Errorf("the next pod has a rate of %d", got.MaxTxRate)
	}
	m.mustDel(t, next)
	m.same(t, "in the end", before)
}

// The node may have a link of the pod's name, and the plugin before may name both.
func TestPreviousAddressesOfTheNode(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.Give(vfAddr(3), netnsOf("pod1"), "net1")
	m.address("pod1", "10.8.0.6/24")
	r := request{
		pod: "pod1", of: vfAddr(3), ipam: chainedIPAM,
		keys: `"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1"},{"name":"net1","sandbox":"/run/netns/pod1"}],
			"ips":[{"interface":0,"address":"192.0.2.1/24"},{"interface":1,"address":"10.8.0.6/24"}]}`,
	}
	m.mustAdd(t, r)
	rec, err := m.plugin.Records.Load(r.owner())
	must(t, err)
	if len(rec.Addresses) != 1 || rec.Addresses[0] != netip.MustParsePrefix("10.8.0.6/24") {
		t.Errorf("recorded addresses %v", rec.Addresses)
	}
}

// A link on one of its own kind sits on what is below that: it is found there by CHECK and DEL, also when the one that was named is
// gone.
func TestMasterOfTheSameKind(t *testing.T) {
	t.Parallel()
	for kind, make := range map[string]func(*machine){
		"macvlan": func(m *machine) { m.MakeMacvlan("", "shim0", "ens2f0") },
		"ipvlan":  func(m *machine) { m.MakeIpvlan("", "shim0", "ens2f0") },
	} {
		m := newMachine(t, attach.Shared)
		m.pod("pod1")
		before := m.state(t)
		make(m)
		r := request{pod: "pod1", of: otherPF(), keys: `"link":"` + kind + `","master":"shim0"`}
		m.mustAdd(t, r)
		must(t, m.plugin.Check(t.Context(), r.raw()))
		m.DelPodLink("", "shim0")
		must(t, m.plugin.Check(t.Context(), r.raw()))
		m.mustDel(t, r)
		m.same(t, "DEL of "+kind, before)
	}
}

// The MAC of a macvlan says whose it is when nothing else does.
func TestDelOfALinkThatNobodyRecorded(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(*testing.T, string){
		"lost": func(t *testing.T, file string) { t.Helper(); must(t, os.RemoveAll(filepath.Dir(file))) },
		"unreadable": func(t *testing.T, file string) {
			t.Helper()
			must(t, os.WriteFile(file, []byte(`{"version":9}`), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Shared)
			m.pod("pod1")
			m.MakeMacvlan(netnsOf("pod1"), "eth0", "ens1f0") // another plugin's, on the same master
			before := m.state(t)
			r := named("macvlan").request
			m.mustAdd(t, r)
			damage(t, filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"))
			m.RenamePodLink(netnsOf("pod1"), "net1", "fast0")
			m.mustDel(t, r)
			m.same(t, "DEL", before)
		})
	}
}

// A driver that was bound again makes another device, which no longer gets the old one's settings; what ADD had set is taken away all
// the same, also when ADD was killed before it could say that it was done.
func TestVLANOfAKilledADDGoesThoughTheDriverWasBoundAgain(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	r := request{pod: "pod1", dev: 3, keys: `"deviceID":"0000:3b:00.3","vlan":100,"trust":"on"`}
	start := m.VFState(vfAddr(3))
	for at := range m.callsOf(t, func() error { return m.add(t, r) }) {
		if at == 0 {
			m.mustDel(t, r)
		}
		m.trap.set(at, killed)
		dies(func() { _ = m.add(t, r) })
		hit := m.trap.hit
		m.trap.clear()
		m.Rebind(vfAddr(3), "")
		m.mustDel(t, r)
		if got := m.VFState(vfAddr(3)); got != start {
			t.Fatalf("killed at %s: the PF holds %+v, want %+v", hit, got, start)
		}
		m.renew(t)
	}
}
