// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/record"
)

// recordOf is the file of pod1's record.
func (m *machine) recordOf(r request) string {
	return filepath.Join(m.dir, "run/attachments", r.owner().ContainerID, r.owner().IfName+".json")
}

// lose takes away all that the state folder holds of an attachment, the home names of its device too.
func (m *machine) lose(t *testing.T, r request) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Dir(m.recordOf(r))))
	for _, file := range []string{"claims/" + r.device().String(), "names/" + r.device().String(), "out/" + r.device().String() + ".json"} {
		must(t, os.RemoveAll(filepath.Join(m.dir, "run", file)))
	}
}

// TestDelAfterTheStateWasLost: somebody emptied the state folder while the pod ran. Its DEL brings home what the pod's interface is
// made of, and leaves what another plugin brought there.
func TestDelAfterTheStateWasLost(t *testing.T) {
	t.Parallel()
	const prev = `,"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"x"}]}`
	behindVF := named("chained behind host-device").request
	chained := behindVF
	chained.keys = strings.Replace(chained.keys, `"deviceID"`, `"link":"chained","deviceID"`, 1)
	vf := request{pod: "pod1", dev: 3}
	tests := []struct {
		name  string
		k     kind
		add   request
		del   request
		names bool      // the home names are still there
		want  [2]string // where netdev and RDMA device are then
	}{
		{"VF", named("moved"), vf, vf, false, [2]string{"host/net1", "host/mlx5_3"}},
		{"VF, its home known", named("moved"), vf, vf, true, [2]string{"host/ens1f0v1", "host/mlx5_3"}},
		{
			"perhaps another plugin's", named("moved"), vf,
			request{pod: "pod1", dev: 3, more: prev},
			false,
			[2]string{"/run/netns/pod1/net1", "host/mlx5_3"},
		},
		{
			"perhaps another plugin's, its home known", named("moved"), vf,
			request{pod: "pod1", dev: 3, more: prev},
			true,
			[2]string{"/run/netns/pod1/net1", "host/mlx5_3"},
		},
		{
			"VF by name of its kind", named("moved"), vf,
			request{pod: "pod1", dev: 3, more: prev + `,"link":"vf"`},
			false,
			[2]string{"host/net1", "host/mlx5_3"},
		},
		{"delegate", named("moved, delegate"), named("moved, delegate").request, named("moved, delegate").request, true, [2]string{"host/ens1f0v1", "host/mlx5_3"}},
		{"chained", named("chained behind host-device"), chained, chained, false, [2]string{"/run/netns/pod1/net1", "host/mlx5_3"}},
		{"chained, not named", named("chained behind host-device"), behindVF, behindVF, false, [2]string{"/run/netns/pod1/net1", "host/mlx5_3"}},
		{"device", named("device by name"), named("device by name").request, named("device by name").request, true, [2]string{"host/ens2f0", "host/mlx5_9"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, tt.k.mode)
			m.pod("pod1")
			tt.k.prepare(m)
			before := m.files(t, "run")
			m.mustAdd(t, tt.add)
			names, err := os.ReadFile(filepath.Join(m.dir, "run/names", tt.add.device().String()))
			m.lose(t, tt.add)
			if tt.names {
				must(t, err)
				must(t, os.WriteFile(filepath.Join(m.dir, "run/names", tt.add.device().String()), names, 0o600))
			}
			for range 2 {
				m.mustDel(t, tt.del)
				if got := m.Where(tt.add.device()); got != tt.want {
					t.Errorf("devices are at %v, want %v", got, tt.want)
				}
			}
			if after := m.files(t, "run"); strings.Join(after, "\n") != strings.Join(before, "\n") {
				t.Errorf("state folder (before, after):\n%s\n\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
			if held := m.ipam.holds(); len(held) > 0 {
				t.Errorf("leases: %v", held)
			}
		})
	}
}

// TestDelByWhatIsWrittenAtTheDevice: the record is gone, or cannot be read, and so is the claim; what was written down at the device
// tells all that counts.
func TestDelByWhatIsWrittenAtTheDevice(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"VF with settings", "chained behind host-device", "device by name", "soft, delegate"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := named(name)
			m := newMachine(t, k.mode)
			m.pod("pod1")
			k.prepare(m)
			before := m.state(t)
			m.mustAdd(t, k.request)
			must(t, os.RemoveAll(filepath.Dir(m.recordOf(k.request))))
			must(t, os.RemoveAll(filepath.Join(m.dir, "run/names", k.device().String())))
			if name != "chained behind host-device" { // whose device its DEL does not name
				must(t, os.RemoveAll(filepath.Join(m.dir, "run/claims", k.device().String())))
			}
			del := k.request
			del.more += `,"prevResult":{"cniVersion":"1.1.0"}`
			if strings.Contains(del.keys, "prevResult") {
				del = k.request
			}
			m.mustDel(t, del)
			m.same(t, "DEL", before)
		})
	}
}

// TestDelLeavesWhatOthersClaim: with its record lost, a DEL whose pod has another attachment's device inside under the name of its
// own takes nothing.
func TestDelLeavesWhatOthersClaim(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	r := request{pod: "pod1", dev: 3}
	m.mustAdd(t, r)
	before := m.state(t)
	other := r.raw()
	other.ContainerID = "cid-other"
	must(t, m.plugin.Del(t.Context(), other))
	m.same(t, "DEL of a container that never was, with a path that leads to a pod's namespace", before)
}

// TestDelAfterARefusal: the name was taken by another plugin's device, ADD was refused, and the runtime calls DEL all the same.
func TestDelAfterARefusal(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]request{
		"VF": {pod: "pod1", dev: 3}, "device": {pod: "pod1", of: otherPF(), keys: `"device":"ens2f0"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.Give(vfAddr(6), netnsOf("pod1"), "net1")
			before := m.state(t)
			if err := m.add(t, r); err == nil {
				t.Fatal("ADD: no error")
			}
			m.mustDel(t, r)
			m.same(t, "ADD that was refused, and DEL", before)
		})
	}
}

// TestDelOfANewerRecord: what a newer program, or nobody, can read still tells whether another plugin brought the netdev.
func TestDelOfANewerRecord(t *testing.T) {
	t.Parallel()
	newer := func(text []byte) []byte {
		return bytes.Replace(text, []byte(`"version": 2,
  "compatible": 1,`), []byte(`"version": 3, "compatible": 3, "state": {"of": "tomorrow"},`), 1)
	}
	torn := func(text []byte) []byte { return text[:len(text)/2] }
	for name, tc := range map[string]struct {
		kind  string
		spoil func([]byte) []byte
		want  [2]string
	}{
		"VF, newer":      {"moved", newer, [2]string{"host/ens1f0v1", "host/mlx5_3"}},
		"VF, torn":       {"moved", torn, [2]string{"host/ens1f0v1", "host/mlx5_3"}},
		"chained, newer": {"chained behind host-device", newer, [2]string{"/run/netns/pod1/net1", "host/mlx5_3"}},
		"chained, torn":  {"chained behind host-device", torn, [2]string{"/run/netns/pod1/net1", "host/mlx5_3"}},
		"chained, empty": {"chained behind host-device", func([]byte) []byte { return nil }, [2]string{"/run/netns/pod1/net1", "host/mlx5_3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := named(tc.kind)
			m := newMachine(t, k.mode)
			m.pod("pod1")
			k.prepare(m)
			before := m.state(t)
			m.mustAdd(t, k.request)
			text, err := os.ReadFile(m.recordOf(k.request))
			must(t, err)
			spoilt := tc.spoil(text)
			if bytes.Equal(spoilt, text) {
				t.Fatalf("the record is as it was:\n%s", text)
			}
			must(t, os.WriteFile(m.recordOf(k.request), spoilt, 0o600))
			if _, err := record.New(filepath.Join(m.dir, "run")).Load(k.owner()); err == nil {
				t.Fatal("the record can be read")
			}
			m.mustDel(t, k.request)
			if got := m.Where(k.device()); got != tc.want {
				t.Errorf("devices are at %v, want %v", got, tc.want)
			}
			m.same(t, "DEL", before)
		})
	}
}

// TestCompatibleRecord: a record of a newer program that says we may act on it is acted on.
func TestCompatibleRecord(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	before := m.state(t)
	r := request{pod: "pod1", dev: 3, keys: `"deviceID":"0000:3b:00.3","vlan":100`}
	m.mustAdd(t, r)
	text, err := os.ReadFile(m.recordOf(r))
	must(t, err)
	text = bytes.Replace(text, []byte(`"version": 2,`), []byte(`"version": 9, "wisdom": [1],`), 1)
	must(t, os.WriteFile(m.recordOf(r), text, 0o600))
	must(t, m.plugin.Check(t.Context(), r.raw()))
	m.mustDel(t, r)
	m.same(t, "DEL", before)
}

// TestOwnLinkIsKnownByItsIndex: an ipvlan has its master's MAC, so that once a pod has renamed it no name and no MAC tells; and the
// master may have gone to another namespace meanwhile.
func TestOwnLinkIsKnownByItsIndex(t *testing.T) {
	t.Parallel()
	ipvlan := request{pod: "pod1", of: otherPF(), keys: `"link":"ipvlan","master":"ens2f0"`}
	macvlan := request{pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`}
	rename := func(m *machine) { m.RenamePodLink(netnsOf("pod1"), "net1", "fast0") }
	for name, tc := range map[string]struct {
		r     request
		spoil func(*machine)
	}{
		"ipvlan, renamed": {ipvlan, rename},
		"ipvlan, renamed, another beside it": {ipvlan, func(m *machine) {
			rename(m)
			m.AddLink(netnsOf("pod1"), "net1")
		}},
		"macvlan, renamed and with another MAC": {macvlan, func(m *machine) {
			rename(m)
			m.SetPodMAC(netnsOf("pod1"), "fast0", "02:99:00:00:00:01")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Shared)
			m.pod("pod1")
			m.mustAdd(t, tc.r)
			tc.spoil(m)
			before := m.state(t)
			must(t, m.gc(t))
			m.same(t, "GC of a living pod", before)
			m.mustDel(t, tc.r)
			if dump := m.Dump(); strings.Contains(dump, "pod1/fast0") {
				t.Errorf("DEL left the link:\n%s", dump)
			}
		})
	}
	for name, r := range map[string]request{"ipvlan": ipvlan, "macvlan": macvlan} {
		t.Run(name+", master away", func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Shared)
			m.pod("pod1")
			m.pod("elsewhere")
			m.mustAdd(t, r)
			m.Give(otherPF(), netnsOf("elsewhere"), "eth7")
			m.mustDel(t, r)
			if dump := m.Dump(); strings.Contains(dump, "pod1/net1") {
				t.Errorf("DEL left the link:\n%s", dump)
			}
		})
	}
}

// TestFunctionMadeAnew: two writes to sriov_numvfs while a pod has the VF, and another VF is at its address, with nothing that would
// tell them apart but the inode of its folder. It gets nothing of the old one.
func TestFunctionMadeAnew(t *testing.T) {
	t.Parallel()
	for name, verb := range map[string]func(*testing.T, *machine, request){
		"DEL": func(t *testing.T, m *machine, r request) { t.Helper(); m.mustDel(t, r) },
		"DEL, its namespace gone": func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.KillNetNS(netnsOf("pod1"))
			m.mustDel(t, r)
		},
		"GC": func(t *testing.T, m *machine, _ request) { t.Helper(); must(t, m.gc(t)) },
		"ADD of another pod": func(t *testing.T, m *machine, _ request) {
			t.Helper()
			m.KillNetNS(netnsOf("pod1"))
			m.pod("pod2")
			other := request{pod: "pod2", dev: softVF, more: rdmaOff}
			m.mustAdd(t, other)
			m.mustDel(t, other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.NoRDMA)
			m.pod("pod1")
			files := m.files(t, "run")
			r := request{pod: "pod1", dev: softVF, keys: `"deviceID":"` + vfAddr(softVF).String() + `","vlan":100,"trust":"on"`, more: rdmaOff + `,"mtu":1400`}
			m.mustAdd(t, r)
			m.RemoveFunction(vfAddr(softVF))
			m.AddVF(attachtest.VF{ID: vfAddr(softVF), PF: vfAddr(0).PCI, Number: softVF - 2, Link: "eth9", Up: true, MAC: "02:77:00:00:00:01"})
			operators := m.VFState(vfAddr(softVF))
			operators.MaxTxRate = 7
			m.SetVFState(vfAddr(softVF), operators)
			dump := m.Dump()
			verb(t, m, r)
			for line := range strings.Lines(dump) {
				if strings.Contains(line, "eth9") && !strings.Contains(m.Dump(), line) {
					t.Errorf("before: %safter:\n%s", line, m.Dump())
				}
			}
			if got := m.VFState(vfAddr(softVF)); got != operators {
				t.Errorf("the PF holds %+v, want %+v", got, operators)
			}
			if after := m.files(t, "run"); strings.Join(after, "\n") != strings.Join(files, "\n") {
				t.Errorf("state folder (before, after):\n%s\n\n%s", strings.Join(files, "\n"), strings.Join(after, "\n"))
			}
		})
	}
}
