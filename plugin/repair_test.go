// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// damaged is a node in memory on which repair is tried: a PF (uverbs0) and four VFs, of which three have RDMA devices.
type damaged struct {
	*attachtest.Kernel
	plugin   *plugin.Plugin
	dir      string
	promised map[bus.ID]bool
	scratch  int
}

const softVF = 5 // the VF without an RDMA device

func vfAddr(n int) bus.ID { return bus.PCI(pci.Addr{Bus: 0x3b, Function: uint8(n)}) }

func newDamaged(t *testing.T) *damaged {
	t.Helper()
	d := &damaged{Kernel: attachtest.New(attach.Exclusive), dir: t.TempDir(), promised: map[bus.ID]bool{}}
	must(t, os.Mkdir(filepath.Join(d.dir, "run"), 0o755))
	pf := vfAddr(0).PCI
	d.AddPF(attachtest.PF{PCI: pf, Link: "ens1f0", MTU: 9000, RDMA: "mlx5_0"})
	for n := 2; n <= 4; n++ {
		d.AddVF(attachtest.VF{ID: vfAddr(n), PF: pf, Number: n - 2, Link: fmt.Sprintf("ens1f0v%d", n-2), RDMA: fmt.Sprintf("mlx5_%d", n)})
	}
	d.AddVF(attachtest.VF{ID: vfAddr(softVF), PF: pf, Number: 3, Link: "ens1f0v3"})
	d.plugin = plugin.New(plugin.Config{
		Dir: filepath.Join(d.dir, "run"), Stderr: io.Discard,
		Open: func(ctx context.Context, netns string) (plugin.Session, error) { return d.Open(ctx, netns) },
		Node: func() (netconf.Node, error) { return netconf.ParseNode(nil) },
	})
	return d
}

func (d *damaged) Functions(context.Context) ([]bus.ID, error) {
	return []bus.ID{vfAddr(0), vfAddr(2), vfAddr(3), vfAddr(4)}, nil
}

func (d *damaged) Promised(_ context.Context, dev bus.ID) (bool, error) {
	return d.promised[dev], nil
}

func (d *damaged) Scratch(context.Context) (string, func(), error) {
	d.scratch++
	path := fmt.Sprintf("/scratch/%d", d.scratch)
	d.AddNetNS(path)
	return path, func() { d.KillNetNS(path) }, nil
}

// request is an ADD of a VF to the pod "pod1".
func (d *damaged) request(dev bus.ID, more string) netconf.Raw {
	const pod, uid = "pod1", "00000000-0000-0000-0000-000000000001"
	return netconf.Raw{
		Stdin: fmt.Appendf(nil, `{"cniVersion":"1.0.0","name":"rail0","type":"podfabric","deviceID":%q,
			"ipam":{"type":"range","ranges":[[{"subnet":"10.1.0.0/24","scope":"node"}]]}%s}`, dev, more),
		ContainerID: pod, IfName: "net1", NetNS: "/run/netns/" + pod,
		Args: "K8S_POD_NAMESPACE=team-a;K8S_POD_NAME=" + pod + ";K8S_POD_UID=" + uid,
	}
}

// add makes that pod and attaches the VF.
func (d *damaged) add(t *testing.T, dev bus.ID, more string) netconf.Raw {
	t.Helper()
	d.AddNetNS("/run/netns/pod1")
	raw := d.request(dev, more)
	if _, err := d.plugin.Add(t.Context(), raw); err != nil {
		t.Fatalf("ADD: %v", err)
	}
	return raw
}

func (d *damaged) repair(t *testing.T, dry bool) []plugin.Finding {
	t.Helper()
	found, err := d.plugin.Repair(t.Context(), d, dry)
	if err != nil {
		t.Fatalf("repair: %v", err)
	}
	if n := d.Sessions(); n != 0 {
		t.Errorf("%d sessions are open after repair", n)
	}
	return found
}

// files lists what lies in the state folder but locks and what is kept for the boot.
func (d *damaged) files(t *testing.T) []string {
	t.Helper()
	var out []string
	root := filepath.Join(d.dir, "run")
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		top, _, _ := strings.Cut(name, "/")
		kept := top == "names" || top == "locks" || strings.Contains(name, "/freed/") || strings.Contains(name, "/cursor/")
		if err == nil && !e.IsDir() && !kept {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// brief is what a table compares of findings.
func brief(found []plugin.Finding) []string {
	out := []string{}
	for _, f := range found {
		out = append(out, fmt.Sprintf("%s %s: %s", f.Kind, f.Object, f.Outcome))
	}
	return out
}

func TestRepair(t *testing.T) {
	t.Parallel()
	const soft = `,"rdma":{"softRoCE":true}`
	tests := []struct {
		name   string
		damage func(t *testing.T, d *damaged)
		want   []string // findings of a dry run; all of them are repaired by the next
	}{
		{"nothing", func(*testing.T, *damaged) {}, nil},
		{"its network namespace died, no DEL", func(t *testing.T, d *damaged) {
			t.Helper()
			d.add(t, vfAddr(2), "")
			d.KillNetNS("/run/netns/pod1")
		}, []string{"attachment attachment pod1/net1"}},
		{"the same with soft RoCE", func(t *testing.T, d *damaged) {
			t.Helper()
			d.add(t, vfAddr(softVF), soft)
			d.KillNetNS("/run/netns/pod1")
		}, []string{"attachment attachment pod1/net1"}},
		{"its path was given to another pod", func(t *testing.T, d *damaged) {
			t.Helper()
			d.add(t, vfAddr(2), "")
			d.KillNetNS("/run/netns/pod1")
			d.AddNetNS("/run/netns/pod1")
		}, []string{"attachment attachment pod1/net1"}},
		{"an ADD that was killed long ago", func(t *testing.T, d *damaged) {
			t.Helper()
			d.save(t, d.add(t, vfAddr(2), ""), func(r *record.Record) {
				r.State, r.Created = record.Intent, time.Now().Add(-time.Hour)
			})
		}, []string{"attachment attachment pod1/net1"}},
		{"a DEL that was killed", func(t *testing.T, d *damaged) {
			t.Helper()
			d.save(t, d.add(t, vfAddr(2), ""), func(r *record.Record) { r.State = record.Deleting })
		}, []string{"attachment attachment pod1/net1"}},
		{"a DEL that had to leave something", func(t *testing.T, d *damaged) {
			t.Helper()
			d.save(t, d.add(t, vfAddr(softVF), soft), func(r *record.Record) { r.State = record.Returning })
		}, []string{"attachment attachment pod1/net1"}},
		{"a soft RoCE device without a record", func(t *testing.T, d *damaged) {
			t.Helper()
			d.AddLink("", "dummy0")
			s, err := d.Open(t.Context(), "")
			must(t, err)
			step := attach.AddSoftRoCE{Name: "pf0123456789", Link: attach.Place{NS: attach.Host, Name: "dummy0"}}
			must(t, errors.Join(s.Apply(t.Context(), step), s.Close()))
		}, []string{"softRoCE soft RoCE device pf0123456789"}},
		{"a claim without a record", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, os.MkdirAll(filepath.Join(d.dir, "run/claims"), 0o700))
			must(t, os.Symlink("../attachments/gone/net1.json", filepath.Join(d.dir, "run/claims", vfAddr(3).String())))
		}, []string{"claim device 0000:3b:00.3"}},
		{"a lease without a record", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, os.MkdirAll(filepath.Join(d.dir, "run/leases/10.1.0.0_24"), 0o700))
			must(t, os.Symlink("gone/net1", filepath.Join(d.dir, "run/leases/10.1.0.0_24/10.1.0.9")))
		}, []string{"lease address 10.1.0.9"}},
		{"a hint without an attachment", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, os.MkdirAll(filepath.Join(d.dir, "run/pods/some-uid"), 0o755))
			must(t, os.WriteFile(filepath.Join(d.dir, "run/pods/some-uid/nccl.conf"), nil, 0o644))
		}, []string{"hint hint of pod some-uid"}},
		{"home under names of the kernel's", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, d.plugin.Del(t.Context(), d.add(t, vfAddr(3), "")))
			d.RenameLink(vfAddr(3), "dev5")
			d.RenameRDMA(vfAddr(3), "ibdev2")
		}, []string{"name device 0000:3b:00.3"}},
		{"a hole in the uverbs numbers", func(_ *testing.T, d *damaged) {
			d.RemoveRDMA("mlx5_0") // uverbs0
		}, []string{"uverbs uverbs0"}},
		{"two holes", func(_ *testing.T, d *damaged) {
			d.RemoveRDMA("mlx5_0")
			d.RemoveRDMA("mlx5_2")
		}, []string{"uverbs uverbs0", "uverbs uverbs1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDamaged(t)
			tc.damage(t, d)
			before, files := d.Dump(), d.files(t)
			want := func(outcome plugin.Outcome) []string {
				out := []string{}
				for _, w := range tc.want {
					out = append(out, w+": "+string(outcome))
				}
				return out
			}
			if diff := cmp.Diff(want(plugin.Planned), brief(d.repair(t, true))); diff != "" {
				t.Errorf("dry run (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, d.Dump()); diff != "" {
				t.Errorf("a dry run changed the machine (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(files, d.files(t)); diff != "" {
				t.Errorf("a dry run changed files (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(want(plugin.Repaired), brief(d.repair(t, false))); diff != "" {
				t.Errorf("repair (-want +got):\n%s", diff)
			}
			if found := d.repair(t, false); len(found) > 0 {
				t.Errorf("repaired once and still: %v", found)
			}
			if left := d.files(t); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
			for n := 2; n <= softVF; n++ {
				if at := d.Where(vfAddr(n))[0]; at != fmt.Sprintf("host/ens1f0v%d", n-2) {
					t.Errorf("netdev of VF %d is %s", n-2, at)
				}
			}
		})
	}
}

// TestRepairBesidePods repairs a healthy node again and again while a pod comes and goes: it finds nothing, and disturbs nobody.
func TestRepairBesidePods(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	before := d.Dump()
	d.AddNetNS("/run/netns/pod1")
	pods := make(chan error, 1)
	go func() {
		for range 20 {
			raw := d.request(vfAddr(3), "")
			if _, err := d.plugin.Add(t.Context(), raw); err != nil {
				pods <- fmt.Errorf("ADD: %w", err)
				return
			}
			if err := d.plugin.Del(t.Context(), raw); err != nil {
				pods <- fmt.Errorf("DEL: %w", err)
				return
			}
		}
		pods <- nil
	}()
	for {
		found, err := d.plugin.Repair(t.Context(), d, false)
		if err != nil || len(found) > 0 {
			t.Errorf("repair: %v, %v", found, err)
		}
		select {
		case err := <-pods:
			must(t, err)
			d.KillNetNS("/run/netns/pod1")
			if diff := cmp.Diff(before, d.Dump()); diff != "" {
				t.Errorf("the machine changed (-before +after):\n%s", diff)
			}
			if left := d.files(t); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
			return
		default:
		}
	}
}

// save changes the record of an attachment behind the plugin's back.
func (d *damaged) save(t *testing.T, raw netconf.Raw, change func(*record.Record)) {
	t.Helper()
	store := record.New(filepath.Join(d.dir, "run"))
	rec, err := store.Load(attach.Owner{ContainerID: raw.ContainerID, IfName: raw.IfName})
	must(t, err)
	change(&rec)
	must(t, store.Save(rec))
}

// TestRepairLeaves has what repair finds and must not touch, or does not even find: machine and files stay as they are.
func TestRepairLeaves(t *testing.T) {
	t.Parallel()
	intent := func(age time.Duration) func(t *testing.T, d *damaged) {
		t.Helper()
		return func(t *testing.T, d *damaged) {
			t.Helper()
			d.save(t, d.add(t, vfAddr(2), ""), func(r *record.Record) {
				r.State, r.Created = record.Intent, time.Now().Add(-age)
			})
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, d *damaged)
		want   []string
		detail string // must occur in the first finding's detail
	}{
		{"a living pod", func(t *testing.T, d *damaged) {
			t.Helper()
			d.add(t, vfAddr(2), "")
		}, nil, ""},
		{"a living pod with soft RoCE", func(t *testing.T, d *damaged) {
			t.Helper()
			d.add(t, vfAddr(softVF), `,"rdma":{"softRoCE":true}`)
		}, nil, ""},
		{"an ADD that may still run", intent(0), []string{"attachment attachment pod1/net1: noted"}, "may still run; look again in "},
		{
			"an ADD that may still be undoing itself", intent(netconf.DefaultDeadline + 5*time.Second),
			[]string{"attachment attachment pod1/net1: noted"},
			"look again in 4s", // ten seconds for undoing, of which five are over, and one for which repair waited
		},
		{"its function is gone", func(t *testing.T, d *damaged) {
			t.Helper()
			d.add(t, vfAddr(softVF), `,"rdma":{"mode":"off"}`)
			d.RemoveFunction(vfAddr(softVF))
		}, []string{"attachment attachment pod1/net1: left"}, "delete the pod"},
		{"its function was made anew", func(t *testing.T, d *damaged) {
			t.Helper()
			d.add(t, vfAddr(softVF), `,"rdma":{"mode":"off"}`)
			d.RemoveFunction(vfAddr(softVF))
			d.AddVF(attachtest.VF{ID: vfAddr(softVF), PF: vfAddr(0).PCI, Number: 3, Link: "eth9"})
		}, []string{"attachment attachment pod1/net1: left"}, "delete the pod"},
		{"a record that cannot be read", func(t *testing.T, d *damaged) {
			t.Helper()
			d.add(t, vfAddr(2), "")
			must(t, os.WriteFile(filepath.Join(d.dir, "run/attachments/pod1/net1.json"), []byte(`{"version":99}`), 0o600))
		}, []string{"record RUN/attachments/pod1/net1.json: left"}, "delete the pod"},
		{"hardware that is called like a soft RoCE device", func(t *testing.T, d *damaged) {
			t.Helper()
			d.RenameRDMA(vfAddr(2), "pf01234")
		}, nil, ""},
		{"a device that a stray process holds", func(t *testing.T, d *damaged) {
			t.Helper()
			d.save(t, d.add(t, vfAddr(2), ""), func(r *record.Record) { r.State = record.Returning })
			d.HoldNetNS("/run/netns/pod1", -1)
			must(t, d.plugin.Leases.Release(t.Context(), "pod1/net1"))
			must(t, d.plugin.Hints.Drop(t.Context(), "00000000-0000-0000-0000-000000000001", attach.Owner{ContainerID: "pod1", IfName: "net1"}))
		}, []string{"attachment attachment pod1/net1: left"}, "still away"},
		{"a claim that is none", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, os.MkdirAll(filepath.Join(d.dir, "run/claims"), 0o700))
			must(t, os.WriteFile(filepath.Join(d.dir, "run/claims/0000:3b:00.3"), nil, 0o600))
		}, []string{"claim device 0000:3b:00.3: left"}, "did not make"},
		{"a lease that is none", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, os.MkdirAll(filepath.Join(d.dir, "run/leases/10.1.0.0_24"), 0o700))
			must(t, os.WriteFile(filepath.Join(d.dir, "run/leases/10.1.0.0_24/10.1.0.9"), nil, 0o600))
		}, []string{"lease leases: left"}, "did not make"},
		{"a wrong name that the node uses", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, d.plugin.Del(t.Context(), d.add(t, vfAddr(3), "")))
			d.RenameLink(vfAddr(3), "dev5")
			d.SetInUse(vfAddr(3), "it is a port of bridge br0")
		}, []string{"name device 0000:3b:00.3: left"}, "bridge br0"},
		{"a name that another device has now", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, d.plugin.Del(t.Context(), d.add(t, vfAddr(3), "")))
			d.RenameLink(vfAddr(3), "dev5")
			d.AddLink("", "ens1f0v1")
		}, []string{"name device 0000:3b:00.3: left"}, "ens1f0v1, is taken"},
		{"a new device at an old address", func(t *testing.T, d *damaged) {
			t.Helper()
			must(t, d.plugin.Del(t.Context(), d.add(t, vfAddr(4), "")))
			d.Rebind(vfAddr(4), "")
			d.RenameRDMA(vfAddr(4), "new")
		}, nil, ""},
		{"a hole below devices in use", func(_ *testing.T, d *damaged) {
			d.RemoveRDMA("mlx5_0")
			d.SetUsers(vfAddr(2), "ib_write_bw (pid 71)")
			d.SetInUse(vfAddr(3), "it carries the default route")
			d.promised[vfAddr(4)] = true
		}, []string{"uverbs uverbs0: left", "uverbs uverbs0: left", "uverbs uverbs0: left"}, "ib_write_bw (pid 71)"},
		{"a hole in shared mode", func(_ *testing.T, d *damaged) {
			d.RemoveRDMA("mlx5_0")
			d.SetMode(attach.Shared)
		}, nil, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDamaged(t)
			tc.damage(t, d)
			before, files := d.Dump(), d.files(t)
			found := d.repair(t, false)
			got := brief(found)
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], filepath.Join(d.dir, "run"), "RUN")
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if len(found) > 0 && !strings.Contains(found[0].Detail, tc.detail) {
				t.Errorf("detail is %q, want %q in it", found[0].Detail, tc.detail)
			}
			if diff := cmp.Diff(before, d.Dump()); diff != "" {
				t.Errorf("the machine changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(files, d.files(t)); diff != "" {
				t.Errorf("files changed (-before +after):\n%s", diff)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
