// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
)

// seeds are configurations near every branch.
func seeds() []string {
	list := []string{
		"", "{}", "{}{}", `{"name":"a"}`, vf(""), vf(`,"MTU":1`), vf(`,"mtu":"pf","rail":3,"rdma":{"wait":"2s"},"hint":{"nccl":">=2.21"}`),
		vf(`,"ipam":{"type":"range","ranges":[[{"subnet":"10.1.0.0/16","perNode":26}],[{"subnet":"fd00::/64","scope":"node"}]]}`),
		vf(`,"ipam":{"type":"range","from":"rail"},"rail":0`),
		vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.7/24"}],"routes":[{"dst":"10.2.0.0/16","gw":"10.1.0.1"}]}`),
		vf(`,"ipam":{"type":"nv-ipam"},"runtimeConfig":{"deviceID":"0000:3b:00.2","ips":["10.1.0.9"]},"capabilities":{"ips":true}`),
		vf(`,"args":{"cni":{"debug":true}},"prevResult":{}`),
	}
	for name, sample := range samples() {
		list = append(list, vf(`,"`+name+`":`+sample))
	}
	for _, key := range netconf.Keys() {
		if strings.HasPrefix(key.Section, "node.json") {
			continue
		}
		for _, kind := range key.Kinds {
			list = append(list, document(kind, key.Section, key.Name, samples()[strings.TrimPrefix(key.Section+"."+key.Name, ".")]))
		}
	}
	return list
}

// sound tells whether a configuration says what its kind is made of, and nothing that another kind is.
func sound(c netconf.Conf) bool {
	selector := func(s netconf.Selector) int {
		n := 0
		for _, is := range []bool{s.Name != "", !s.PCI.IsZero(), s.RDMA != "", s.PFNames != nil, s.MAC != "", s.Path != ""} {
			if is {
				n++
			}
		}
		return n
	}
	by, master := selector(c.By), selector(c.Master)
	ok := (c.Previous != nil) == (c.Kind == netconf.KindChained) && (c.Macvlan.Mode != "") == (c.Kind == netconf.KindMacvlan) &&
		(c.Kind == netconf.KindVF) == (c.VF.Baseline != "") && (c.By.Key != "") == (by > 0) && (c.Master.Key != "") == (master > 0)
	switch c.Kind {
	case netconf.KindVF:
		return ok && !c.Device.IsZero() && !c.Device.SF() && by+master == 0
	case netconf.KindDevice:
		return ok && c.Device.IsZero() == (by == 1) && master == 0 && !c.AsksPF()
	case netconf.KindMacvlan, netconf.KindIPVlan:
		return ok && c.Device.IsZero() && by == 0 && master == 1 && c.RDMA.Mode != netconf.RDMAMove && !c.AsksPF()
	case netconf.KindChained:
		return ok && by+master == 0 && c.MAC == "" && c.MTU == (netconf.MTU{}) && c.IPAM.Kind == netconf.IPAMNone && !c.AsksPF()
	}
	return false
}

// FuzzParse: no input panics; a refusal can be acted on; what is accepted is accepted the same way again; and DEL can read
// whatever ADD could.
func FuzzParse(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s), "net1", "K8S_POD_NAME=a;IP=10.1.0.9")
	}
	index := 17
	n := netconf.Node{Index: &index}
	f.Fuzz(func(t *testing.T, stdin []byte, ifname, args string) {
		r := raw(string(stdin))
		r.IfName, r.Args = ifname, args
		first, err := netconf.Parse(r, n)
		if err != nil {
			if p := problem(t, err); p.Field == "" {
				t.Errorf("refusal without a field: %v", p)
			}
			return
		}
		second, err := netconf.Parse(r, n)
		if diff := cmp.Diff(first, second, values()); err != nil || diff != "" {
			t.Fatalf("second time: %v\n%s", err, diff)
		}
		if !json.Valid(stdin) || !sound(first) {
			t.Errorf("accepted %q as %+v", stdin, first)
		}
		for _, set := range first.IPAM.Ranges {
			for _, r := range set {
				if !r.Subnet.Contains(r.First) || !r.Subnet.Contains(r.Last) || r.Last.Less(r.First) {
					t.Errorf("range %+v leaves its subnet", r)
				}
			}
		}
		down, err := netconf.ParseTeardown(r)
		if err != nil {
			t.Fatalf("DEL cannot read what ADD accepted: %v", err)
		}
		if down.Name != first.Name || down.IPAM.Kind != first.IPAM.Kind || down.Request.Pod != first.Request.Pod {
			t.Errorf("DEL reads %+v, ADD read %+v", down, first)
		}
	})
}

func FuzzParseNode(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"version":1,"index":17,"rails":{"0":{"pci":"0000:3b:00.0","subnet":"10.0.17.0/27","gateway":"10.0.17.1"}}}`,
		`{"allow":{"pfs":[],"masters":["a"],"kinds":["vf"],"subnets":["10.0.0.0/8"]},"log":{"level":"debug"},"deadline":"20s"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := netconf.ParseNode(text)
		if err != nil {
			if p := problem(t, err); p.Code != netconf.CodeInvalid {
				t.Errorf("code %d, want 7", p.Code)
			}
			return
		}
		if n.Deadline <= 0 || n.KubeletRoot == "" || n.Log.Level == "" {
			t.Errorf("accepted %q as %+v", text, n)
		}
	})
}

func FuzzTeardown(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s), "c0ffee", "net1", "K8S_POD_UID=0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a00")
	}
	f.Fuzz(func(t *testing.T, stdin []byte, id, ifname, args string) {
		_, err := netconf.ParseTeardown(netconf.Raw{Stdin: stdin, ContainerID: id, IfName: ifname, Args: args})
		var p *netconf.Problem
		if err != nil && !errors.As(err, &p) {
			t.Fatalf("error %v is no *Problem", err)
		}
	})
}
