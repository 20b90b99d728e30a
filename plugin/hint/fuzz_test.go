// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/nccl"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/hint"
)

// written are the variables that a hint may set; NCCL loads code that others name (NCCL_NET_PLUGIN and its like).
var written = []string{
	nccl.VarHCA, nccl.VarNet, nccl.VarTC, nccl.VarMergeLevel, nccl.VarMergeNICs, "NCCL_IB_GID_INDEX", "NCCL_IB_ADDR_RANGE", "NCCL_IB_ADDR_FAMILY",
	"NCCL_IB_ROCE_VERSION_NUM",
}

// FuzzMerge: of any two parts of one pod beside a good one comes a pair of files in which every version of NCCL reads exactly the
// settings that fabric.json gives reasons for, all of them known ones; both files print as they stand, and are the same on the
// host and in the pod.
func FuzzMerge(f *testing.F) {
	two := attachment(2, "10.2.0.5/24")
	evil := attachment(3, "10.3.0.5/24")
	evil.RDMA.Device = "mlx5_0\nNCCL_NET_PLUGIN=/tmp/x.so"
	evil.Network, evil.Master = "a=b\nNCCL_X=1", "\x1b[2J\u202e"
	evil.Warnings = []string{"w\r\nNCCL_Y=1", "\u009b31m"}
	other := macvlan(attachment(2, "fd00::5/64"))
	other.Settings.Role, other.Settings.NCCL, other.Settings.NoRight = netconf.RoleOther, ">=2.18\nNCCL_Z=1", netconf.NoRightFail
	class := 99999
	other.Settings.TrafficClass, other.Settings.FailClosed = &class, true
	long := samePF(attachment(4, "10.4.0.5/24"))
	long.RDMA.Device = strings.Repeat("m", 70)
	for _, a := range []hint.Fragment{two, evil, other, long, noRDMA(two)} {
		for _, b := range []hint.Fragment{storage(two), evil, macvlan(two)} {
			x, errX := json.Marshal(a)
			y, errY := json.Marshal(b)
			if errX != nil || errY != nil {
				f.Fatal(errX, errY)
			}
			f.Add(x, y, "net2", "net3")
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte, ifname, ifname2 string) {
		n := newNode(t, "podfabric")
		good := attachment(1, "10.1.0.5/24")
		parts := []hint.Fragment{good}
		for i, text := range [][]byte{a, b} {
			part, err := hint.DecodeFragment(text)
			if err != nil {
				return
			}
			part.Owner = attach.Owner{ContainerID: sandbox, IfName: []string{ifname, ifname2}[i]}
			part.Pod = good.Pod
			part.Settings.Volume = "podfabric"
			parts = append(parts, part)
		}
		for _, part := range parts {
			warnings, err := n.store.Put(t.Context(), uid, part)
			var p *netconf.Problem
			switch {
			case errors.Is(err, hint.ErrName), errors.As(err, &p):
				return // and the ADD of that attachment fails
			case err != nil:
				if !errors.Is(err, nccl.ErrUnwritable) && len(part.Owner.IfName) < 200 {
					t.Errorf("put %+v: %v", part, err)
				}
				return
			}
			if slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "no such file") }) {
				t.Errorf("warnings %q", warnings)
			}
			conf, doc := string(n.host(t, "nccl.conf")), string(n.host(t, "fabric.json"))
			if conf != n.pod(t, "nccl.conf") || doc != n.pod(t, "fabric.json") {
				t.Error("the host's files are not the pod's")
			}
			readBack(t, conf, doc)
		}
	})
}

// readBack compares the two files.
func readBack(t *testing.T, conf, doc string) {
	t.Helper()
	var d hint.Document
	if err := json.Unmarshal([]byte(doc), &d); err != nil {
		t.Fatalf("fabric.json: %v", err)
	}
	want := make([]nccl.Pair, 0, len(d.NCCL.Settings))
	for _, s := range d.NCCL.Settings {
		want = append(want, nccl.Pair{Name: s.Name, Value: s.Value})
		if !slices.Contains(written, s.Name) {
			t.Errorf("%s is set", s.Name)
		}
	}
	for _, v := range append(nccl.Generations(), nccl.Version{Major: 2, Minor: 3, Patch: 5}) {
		if diff := cmp.Diff(want, nccl.ParseConf(v, []byte(conf)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("NCCL %s reads (-fabric.json +nccl.conf):\n%s", v, diff)
		}
	}
	for name, text := range map[string]string{"nccl.conf": conf, "fabric.json": doc} {
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(text) {
			t.Errorf("%s has a character that does not print at %d: %.80q", name, i, text[max(i, 0):])
		}
	}
}
