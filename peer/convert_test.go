// SPDX-License-Identifier: Apache-2.0

package peer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/nad"
	"github.com/podfabric/podfabric/peer"
)

// converted gives the configuration on one line and the notes.
func converted(t *testing.T, conf string) (string, []string, error) {
	t.Helper()
	d := nad.Read("a.json", []byte(conf))[0]
	c, err := peer.Convert(peer.Network{Definition: true, Name: "net-a", Config: d.Config.Root})
	if err != nil {
		return "", nil, err
	}
	return strings.Join(strings.Fields(string(nad.Encode(c.Config))), ""), c.Notes, nil
}

// The order of the keys is the author's; ours come where they belong.
func TestConvert(t *testing.T) {
	t.Parallel()
	const begin = `{"cniVersion":"1.0.0","name":"n",`
	for _, tc := range []struct {
		name, conf, want string
		notes            int
	}{
		{
			"sriov alone leaves the RDMA device", head + `"type":"sriov","vlan":7,"ipam":{"type":"nv-ipam","poolName":"p"}}`,
			begin + `"type":"podfabric","link":"vf","vlan":7,"ipam":{"type":"nv-ipam","poolName":"p"},"rdma":{"mode":"off"}}`, 1,
		},
		{
			"sriov and rdma", list(`{"type":"sriov"},{"type":"rdma"}`),
			begin + `"plugins":[{"type":"podfabric","link":"vf","rdma":{"mode":"move"}}]}`, 1,
		},
		{
			"an MTU, others in their order", list(`{"type":"sriov"},{"type":"sbr"},{"type":"tuning","mtu":9000,"promisc":true},{"type":"rdma"},{"type":"vrf","vrfname":"r"}`),
			begin + `"plugins":[{"type":"podfabric","link":"vf","mtu":9000,"rdma":{"mode":"move"}},{"type":"sbr"},{"type":"tuning","promisc":true},{"type":"vrf","vrfname":"r"}]}`, 2,
		},
		{
			"an MTU of the macvlan's own stays before tuning's", list(`{"type":"macvlan","master":"e","mtu":1400},{"type":"tuning","mtu":9000}`),
			begin + `"plugins":[{"type":"podfabric","link":"macvlan","master":"e","mtu":1400},{"type":"tuning","mtu":9000}]}`, 1,
		},
		{
			"version and name", `{"type":"ipvlan","master":"e"}`,
			`{"cniVersion":"1.0.0","name":"net-a","type":"podfabric","link":"ipvlan","master":"e"}`, 3,
		},
		{
			"keys of the list", `{"cniVersion":"0.4.0","name":"n","disableCheck":true,"odd":1,"plugins":[{"type":"host-device","device":"e"}]}`,
			`{"cniVersion":"0.4.0","name":"n","disableCheck":true,"plugins":[{"type":"podfabric","link":"device","device":"e","rdma":{"mode":"off"}}]}`, 2,
		},
		{
			"ipam without a type", head + `"type":"macvlan","master":"e","ipam":{"subnet":"10.0.0.0/8"}}`,
			begin + `"type":"podfabric","link":"macvlan","master":"e"}`, 2,
		},
		{
			"a default route asked for already", head + `"type":"macvlan","master":"e","ipam":{"type":"whereabouts","routes":[{"dst":"0.0.0.0/0"}],"defaultRoute":true}}`,
			begin + `"type":"podfabric","link":"macvlan","master":"e","ipam":{"type":"whereabouts","routes":[{"dst":"0.0.0.0/0"}],"defaultRoute":true}}`, 1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, notes, err := converted(t, tc.conf)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil || len(notes) != tc.notes {
				t.Errorf("%v, %d notes %q (-want +got)\n%s", err, len(notes), notes, diff)
			}
		})
	}
}

func TestConvertRefuses(t *testing.T) {
	t.Parallel()
	for conf, want := range map[string]error{
		head + `"type":"podfabric"}`: peer.ErrOurs, list(`{"type":"sriov"},{"type":"podfabric"}`): peer.ErrOurs,
		head + `"type":"rdma"}`: peer.ErrOther, head + `"mtu":1}`: peer.ErrOther,
	} {
		if _, _, err := converted(t, conf); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", conf, err, want)
		}
	}
	for conf, want := range map[string]string{
		head + `"type":"ipvlan","master":"e","mode":"l3"}`:                     `write "mode": "l2"`,
		head + `"type":"macvlan"}`:                                             `"master" is missing`,
		head + `"type":"ipvlan","master":"e","mode":"l3s"}`:                    `"mode" "l3s"`,
		head + `"type":"sriov","vlan":"7"}`:                                    `vlan: found "7"`,
		head + `"type":"sriov","ipam":{"type":"dhcp"}}`:                        `dhcp`,
		head + `"type":"macvlan","master":"e","linkInContainer":true}`:         `"linkInContainer"`,
		head + `"type":"host-device","device":"e","useInterfaceNetwork":true}`: `"useInterfaceNetwork"`,
	} {
		if _, _, err := converted(t, conf); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", conf, err, want)
		}
	}
}

// A misspelt key that validate knows is named, and a default route goes where validate says.
func TestConvertSays(t *testing.T) {
	t.Parallel()
	const routes = `"ipam":{"type":"whereabouts","range":"10.0.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}}`
	for conf, want := range map[string]string{
		sriov(`"vlna":7,`): `vlna is left out: sriov had no such key; it means "vlan"`,
		list(`{"type":"macvlan","master":"e",` + routes + `,{"type":"sbr"}`): "the default route 0.0.0.0/0 stays, and goes into a table of its own by sbr",
		head + `"type":"macvlan","master":"e",` + routes:                     "takes the pod's from its first network",
	} {
		if _, notes, err := converted(t, conf); err != nil || !strings.Contains(strings.Join(notes, "\n"), want) {
			t.Errorf("%s: %v, %q, want %q", conf, err, notes, want)
		}
	}
}
