// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golden compares with a file; UPDATE=1 writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE") == "1" {
		must(t, os.WriteFile(path, got, 0o644)) //nolint:gosec // testdata
		return
	}
	if diff := cmp.Diff(string(readFile(t, path)), string(got)); diff != "" {
		t.Errorf("%s (-want +got); UPDATE=1 writes it anew\n%s", path, diff)
	}
}

// TestNetworks judges the configurations of testdata/networks. The first word of a file's name is its verdict, written by hand
// from the plugins' own sources; the whole answers are in a golden file.
func TestNetworks(t *testing.T) {
	t.Parallel()
	all := []verdict{}
	for _, file := range networkFiles(t) {
		name := filepath.Base(file)
		list := judgeFile(t, name, string(readFile(t, file)))
		want, _, _ := strings.Cut(name, "-")
		for _, v := range list {
			if want != "mixed" && v.Verdict != want || len(list) != 1 && want != "mixed" {
				t.Errorf("%s: %d verdicts, %s", name, len(list), short(v))
			}
			if v.Verdict == reject && v.Line == nil {
				t.Errorf("%s: no line in %s", name, short(v))
			}
		}
		all = append(all, list...)
	}
	var out bytes.Buffer
	must(t, printJSON(&out, all))
	golden(t, "testdata/networks.golden", out.Bytes())
}

// told is what a plugin, the runtime or the API server says of a file of testdata/networks (the message is its own, from its
// source), or what must be pointed out; and the line of the file with the mistake.
type told struct {
	file, link string
	line       int
	reason     []string // in the reason
	warnings   []string // each in one of the warnings
}

func wantTold() []told {
	return []told{
		{"accept-sriov-rdma-tuning.yaml", "vf", 0, nil, []string{"exclusive RDMA namespace mode"}},
		{"accept-macvlan-resource.yaml", "macvlan", 0, nil, []string{"must exist under this very name on each node"}},
		{"accept-hostdevice-rdma.yaml", "device", 0, nil, nil},
		{"accept-ib-isolated.yaml", "", 0, nil, []string{"NCCL_IB_PKEY"}},
		{"warn-default-route.json", "vf", 0, nil, []string{"default route on a secondary network"}},
		{"warn-hostlocal-range.yaml", "vf", 0, nil, []string{"not unique across nodes"}},
		{"warn-sriov-trust-yes.yaml", "vf", 0, nil, []string{`trust "yes"`}},
		{"warn-sriov-dashed-rate.yaml", "vf", 0, nil, []string{`max-tx-rate has no effect`, `"max_tx_rate"`}},
		{"warn-sriov-no-ipam.yaml", "vf", 0, nil, []string{"fe80::"}},
		{"warn-sriov-fixed-device.yaml", "vf", 0, nil, []string{"one node's PCI address is written for all nodes"}},
		{"warn-resource-blank.yaml", "vf", 0, nil, []string{"no pod can ask for it"}},
		{"warn-annotation-case.yaml", "macvlan", 0, nil, []string{"k8s.v1.cni.cncf.io/resourcename is not read"}},
		{"warn-macvlan-no-master.yaml", "macvlan", 0, nil, []string{"default route", "dhcp needs its daemon"}},
		{"warn-unknown-plugin.yaml", "vf", 0, nil, []string{`unknown plugin type "quantum-shaper"`}},
		{"warn-hostdevice-two.json", "device", 0, nil, []string{"pciBusID has no effect", "the same address"}},
		{"reject-sriov-vlan-range.yaml", "vf", 12, []string{"0 to 4094", "found 4095"}, nil},
		{"reject-sriov-qos-alone.yaml", "vf", 13, []string{"vlan id must be configured to set vlan QoS"}, nil},
		{"reject-sriov-trust-bool.yaml", "vf", 13, []string{"cannot unmarshal bool into Go value of type string"}, nil},
		{"reject-sriov-link-state.yaml", "vf", 13, []string{"invalid link_state value", "auto, enable, disable"}, nil},
		{"reject-sriov-mac.yaml", "vf", 13, []string{"02:11:22:33:44"}, nil},
		{"reject-sriov-rates.yaml", "vf", 13, []string{"min_tx_rate", "500", "100"}, nil},
		{"reject-sriov-proto.yaml", "vf", 13, []string{"802.1q or 802.1ad"}, nil},
		{"reject-annotation-case.yaml", "vf", 9, []string{"VF pci addr is required", "k8s.v1.cni.cncf.io/resource-name"}, nil},
		{"reject-rdma-first.yaml", "", 10, []string{"chained plugin", "prevResult"}, nil},
		{"reject-rdma-macvlan.yaml", "macvlan", 11, []string{"remove the rdma entry"}, nil},
		{"reject-rdma-podfabric.yaml", "vf", 11, []string{"drop the rdma entry", "fail every ADD"}, nil},
		{"reject-tuning-number.yaml", "vf", 12, []string{`the string "0"`, "cannot unmarshal number into Go value of type string"}, nil},
		{"reject-tuning-kernel.yaml", "vf", 11, []string{"invalid net sysctl key"}, nil},
		{"reject-macvlan-mode.yaml", "macvlan", 10, []string{"unknown macvlan mode"}, nil},
		{"reject-macvlan-mtu.yaml", "macvlan", 9, []string{"the number 9000"}, nil},
		{"reject-macvlan-ib.yaml", "macvlan", 10, []string{"probably InfiniBand by its name", "EINVAL", "ipoib"}, nil},
		{"reject-macvlan-masters.yaml", "macvlan", 10, []string{"cannot unmarshal array"}, nil},
		{"reject-ib-pkey-number.yaml", "", 10, []string{`the string "5"`}, nil},
		{"reject-hostlocal-outside.json", "", 3, []string{"RangeStart 10.1.3.5 not in network 10.1.2.0/24"}, nil},
		{"reject-hostlocal-hostbits.json", "", 2, []string{"Network has host bits set", "10.1.2.0/24"}, nil},
		{"reject-hostlocal-flat-ranges.json", "", 2, []string{"list of lists"}, nil},
		{"reject-static-no-length.json", "macvlan", 2, []string{"CIDR notation"}, nil},
		{"reject-whereabouts-range.json", "macvlan", 2, []string{"invalid CIDR"}, nil},
		{"reject-route-gateway.json", "macvlan", 3, []string{"10.3.0.1 is in no range of this network"}, nil},
		{"reject-route-hostbits.json", "macvlan", 2, []string{"host bits"}, nil},
		{"reject-nvipam-type.json", "macvlan", 2, []string{"ippool or cidrpool"}, nil},
		{"reject-plugin-misspelt.yaml", "vf", 11, []string{`did you mean "tuning"?`, `failed to find plugin "tunning" in path`}, nil},
		{"reject-ipam-misspelt.yaml", "macvlan", 8, []string{`did you mean "whereabouts"?`}, nil},
		{"reject-version-unknown.json", "macvlan", 1, []string{"incompatible CNI versions"}, nil},
		{"reject-plugins-empty.json", "", 1, []string{"no plugins in list"}, nil},
		{"reject-config-map.yaml", "", 7, []string{"spec.config as a string"}, nil},
		{"reject-config-outside-spec.yaml", "", 5, []string{"move the configuration to spec.config"}, nil},
		{"reject-api-version.yaml", "", 1, []string{"k8s.cni.cncf.io/v1"}, nil},
		{"reject-kind-case.yaml", "", 2, []string{"NetworkAttachmentDefinition"}, nil},
		{"reject-name-underscore.yaml", "", 4, []string{"metadata.name"}, nil},
		{"reject-sriovnetwork.yaml", "", 2, []string{"SriovNetwork"}, nil},
		{"reject-json-trailing-comma.yaml", "", 12, []string{"trailing comma"}, nil},
		{"reject-json-comment.yaml", "", 8, []string{"remove the comment"}, nil},
		{"reject-json-smart-quotes.yaml", "", 8, []string{`plain " quotes`}, nil},
		{"reject-json-open-brace.yaml", "", 13, []string{"after object key:value pair"}, []string{"once mended: "}},
		{"reject-json-bom.json", "", 1, []string{"byte order mark"}, nil},
		{"reject-json-cut.json", "", 3, []string{"the { of line 3 is never closed", "unexpected end of JSON input"}, nil},
		{"reject-yaml-tab.yaml", "", 4, []string{"a tab is no indentation"}, nil},
		{"reject-yaml-open-quote.yaml", "", 6, []string{"close the quote that begins here"}, nil},
		{"reject-json-template.yaml", "", 10, []string{"render the template first"}, nil},
		{"reject-json-slashes.json", "", 1, []string{"remove the comment"}, nil},
		{"reject-yaml-flat.yaml", "", 4, []string{"indent name below metadata"}, nil},
		{"reject-bond-one-link.yaml", "", 9, []string{"Bonding requires at least two links"}, nil},
		{"reject-whereabouts-one-pool.yaml", "macvlan", 10, []string{"file exists"}, []string{"/dev/infiniband"}},
		{"warn-type-and-plugins.yaml", "vf", 0, nil, []string{`Multus runs "sriov" alone`}},
		{"accept-ib-kubernetes.yaml", "", 0, nil, []string{"needs ib-kubernetes"}},
		{"accept-podfabric-coordinator.yaml", "vf", 0, nil, nil},
		{
			"warn-podfabric-hazards.yaml", "macvlan", 0, nil,
			[]string{"/dev/infiniband", "one address for every pod", "the same address", "default route on a secondary network", "under this very name"},
		},
		{"reject-crlf.yaml", "", 14, []string{"unknown ipvlan mode"}, nil},
	}
}

func TestNetworksTold(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, tc := range wantTold() {
		seen[tc.file] = true
		t.Run(tc.file, func(t *testing.T) {
			t.Parallel()
			v := judgeFile(t, tc.file, string(readFile(t, filepath.Join("testdata/networks", tc.file))))[0]
			checkTold(t, v, tc)
		})
	}
	for _, file := range networkFiles(t) {
		if name := filepath.Base(file); strings.HasPrefix(name, "reject") && !seen[name] {
			t.Errorf("%s: nobody says what its reason must be", name)
		}
	}
}

func checkTold(t *testing.T, v verdict, tc told) {
	t.Helper()
	if got := v.Link; got == nil && tc.link != "" || got != nil && *got != tc.link {
		t.Errorf("link: %s, want %q", short(v), tc.link)
	}
	if tc.line != 0 && (v.Line == nil || *v.Line != tc.line) {
		t.Errorf("line: %s, want %d", short(v), tc.line)
	}
	for _, part := range tc.reason {
		if v.Reason == nil || !strings.Contains(*v.Reason, part) {
			t.Errorf("reason: %s, want %q in it", short(v), part)
		}
	}
	for _, part := range tc.warnings {
		if !slices.ContainsFunc(v.Warnings, func(w string) bool { return strings.Contains(w, part) }) {
			t.Errorf("warnings: %q, want %q in one", v.Warnings, part)
		}
	}
}
