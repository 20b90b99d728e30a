// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// caseFiles are the networks of the corpus; none: there is no corpus here, which CI does not put up with.
func caseFiles(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("PODFABRIC_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cases")
	}
	files, err := filepath.Glob(filepath.Join(dir, "nads", "*.[jy]*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no cases below %s: set PODFABRIC_CASES", dir)
		}
		t.Logf("no cases below %s: nothing compared", dir)
	}
	return files
}

// answer is what a case's .expect.md says.
type answer struct {
	verdict, link, field string
	line                 int
	reason, warnings     []string // words of the reason; words that each stand in some warning
	not                  []string // words that stand nowhere
}

// answers were written by hand from shared/cases/nads/*.expect.md.
func answers() map[string]answer {
	return map[string]answer{
		"001": {
			verdict: warn, link: "vf", warnings: []string{"default route", "not unique across nodes", "exclusive RDMA", "no MTU is set anywhere"},
			not: []string{"JSON"},
		},
		"002": {verdict: accept, link: "vf", not: []string{"sysctl"}},
		"003": {
			verdict: reject, field: "type", line: 9, reason: []string{"rdma is a chained plugin", "no prevResult", "fails every ADD", "ipam and deviceID", "put sriov (or host-device) before it", "resourceName"},
			warnings: []string{"function 0, a physical function", "one node's PCI address is written for all nodes"},
		},
		"004": {verdict: warn, link: "vf", warnings: []string{"link without address", "fe80::", "no rdma plugin", "there is no CHECK", "0.1.0"}},
		"005": {
			verdict: reject, link: "vf", field: "vlan", line: 5, reason: []string{`"vlan"`, `found "28"`, "the number 28", "cannot unmarshal string"},
			warnings: []string{"VF pci addr is required", "master has no effect", "cniVersion is missing"},
		},
		"006": {
			verdict: reject, link: "vf", field: "deviceID", line: 6, reason: []string{"no resourceName annotation and no deviceID", "VF pci addr is required"},
			warnings: []string{"raise it to 0.3.1", "if0 has no effect", "l2enable has no effect", "no ipam"}, not: []string{"incompatible"},
		},
		"007": {
			verdict: reject, link: "macvlan", field: "master", line: 9,
			reason:   []string{"probably InfiniBand by its name", "20-byte addresses", "Ethernet", "EINVAL", "ipoib", "ib-sriov"},
			warnings: []string{"no name", "not unique across nodes"}, not: []string{"list of lists"},
		},
		"008": {verdict: accept, link: "device", warnings: []string{"moves the netdev only"}, not: []string{`specify either`}},
		"009": {
			verdict: reject, field: "spec.config", line: 15, reason: []string{"invalid character '}' after array element", "close the list"},
			warnings: []string{"macvlan's word", "parent's MAC"},
		},
		"010": {
			verdict: reject, link: "macvlan", field: "plugins[1].type", line: 12,
			reason: []string{`unknown plugin type "coordinattor"; did you mean "coordinator"?`, `failed to find plugin "coordinattor" in path`}, not: []string{"cniType"},
		},
		"011": {
			verdict: warn, link: "vf", warnings: []string{"empty prefix", "no pod can ask for it", "link without address", "no IPv4 GID", "follows the VRF"},
			not: []string{"vlanQoS"},
		},
		"012": {
			verdict: reject, line: 35, reason: []string{"data after the top-level value"},
			warnings: []string{"trailing comma", "etcd_host", "host bits", "10.10.5.1 is in no range of this network"}, not: []string{"leading zero"},
		},
		"013": {
			verdict: warn, link: "macvlan", warnings: []string{"no name: libcni refuses it as a file", "must exist under this very name on each node", "/dev/infiniband"},
			not: []string{"poolType"},
		},
		"014": {
			verdict: warn, warnings: []string{"default route", "not unique across nodes", "no rdma plugin", "NCCL_IB_PKEY is an index", "all-zero"},
			not: []string{"unmarshal"},
		},
		"015": {
			verdict: warn, link: "macvlan", warnings: []string{`route has no effect`, `"routes"`, "gateway's default route", "/dev/infiniband"},
			not: []string{"tab", "YAML", "invalid"},
		},
		"016": {
			verdict: warn, link: "ipvlan", warnings: []string{"cniVersion is missing", "0.1.0", "takes the whole subnet", "not unique across nodes", "parent's MAC"},
			not: []string{"tab", "YAML"},
		},
	}
}

func TestCases(t *testing.T) {
	t.Parallel()
	files := caseFiles(t)
	for _, file := range files {
		number := filepath.Base(file)[:3]
		t.Run(number, func(t *testing.T) {
			t.Parallel()
			want, known := answers()[number]
			list := judgeFile(t, file, string(readFile(t, file)))
			if !known || len(list) != 1 {
				t.Fatalf("%s: %d verdicts, answer known: %t", file, len(list), known)
			}
			v := list[0]
			field := ""
			if v.Field != nil {
				field = *v.Field
			}
			if v.Verdict != want.verdict || field != want.field {
				t.Errorf("%s, want %s, field %s", short(v), want.verdict, want.field)
			}
			checkTold(t, v, told{link: want.link, line: want.line, reason: want.reason, warnings: want.warnings})
			all := strings.Join(append(slices.Clone(v.Warnings), short(v)), "\n")
			for _, word := range want.not {
				if strings.Contains(all, word) {
					t.Errorf("%q is said in:\n%s", word, all)
				}
			}
		})
	}
	if len(files) > 0 && len(files) != len(answers()) {
		t.Errorf("%d cases, %d answers", len(files), len(answers()))
	}
}

// others are the names, addresses and paths of the cases, and what takes their place: the answers must not hang on them. What
// carries the meaning of a case stays: that a name is one of InfiniBand, that an address is in a range, that a word is misspelt.
func others() *strings.Replacer {
	return strings.NewReplacer(
		"sriov-rdma-net", "blue-fabric", "sriov-rdma-vf", "green-fabric", "sriov-rdma-mlnx", "l2-only", `"sriov-rdma"`, `"plain-l2"`, "rdma-net", "lonely",
		"host-device-conf1", "old-network", "mynet1", "ancient", "mynet", "anynet", "macvlan-conf-1", "shared-a", "macvlan-whereabouts-conf-1", "shared-b",
		"example-hostdevice-network", "whole-device", "ipvlan-mtu", "narrow", "ipvlan-ens192", "thin", "macvlan-ens192", "wide", "home-network", "flat",
		"ib-sriov-network", "fast-ib", "sriov-network", "fast", `"test"`, `"other"`, `\"test\"`, `\"other\"`, `\"blue\"`, `\"red\"`, "testnamespace", "space", "kube-system", "team-a",
		"mellanox.com/sriov_rdma", "example.org/pool_a", "nvidia.com/sriov-rdma-vf", "example.org/b", "mellanox.com/mlnx_rdma", "example.org/c",
		"nvidia.com/hostdev", "example.org/d", "mellanox.com/mlnx_sriov_rdma_ib", "example.org/e", `"/testresource"`, `"/nothing"`,
		"my-pool", "pool-z", "pool1", "pool9", "10-6-v4", "pool-x", `"blue"`, `"red"`,
		"ens192", "enp7s0f1", "enp5s0f0", "ens9f1", "ens1f0", "enp9s0", "ibs10", "ibp66s0", "enp3s0f0np0", "ens3f1np1", "enp42s0", "ens4", "net0", "fab7", "foo0", "bar1",
		"0000:03:00.0", "0000:c1:00.0",
		"10.56.217.", "10.99.3.", "192.168.2.", "172.16.9.", "192.168.91.", "172.31.4.", "10.20.0.0/16", "10.80.0.0/16", "10.20.", "10.80.",
		"192.168.1.", "172.22.5.", "192.168.122.", "172.23.6.", "192.168.0.0", "172.24.0.0", "10.10.5.1", "10.77.8.1", "192.0.2.", "198.51.100.",
		"2001:db8:0:01ff::1", "2001:db8:7:01aa::9", "2001:db8:0::1", "2001:db8:7::9", "10.10.0.", "10.77.0.", "example.com", "example.net",
		`"0x5"`, `"0x7"`, `"28"`, `"61"`, "0000-000000000003", "0000-000000000009", "coordinattor", "coordinatorr",
	)
}

// namedThings finds what others should have replaced.
var namedThings = regexp.MustCompile(`10\.56\.|192\.168\.|ens192|ibs10|enp42s0|mellanox|nvidia|mynet|0000:03`)

func TestCasesHangOnNoNames(t *testing.T) {
	t.Parallel()
	r := others()
	for _, file := range caseFiles(t) {
		text := string(readFile(t, file))
		changed := r.Replace(text)
		if changed == text || namedThings.MatchString(changed) {
			t.Errorf("%s: not all names replaced: %q", file, namedThings.FindString(changed))
		}
		want, got := judgeFile(t, file, text), judgeFile(t, file, changed)
		for i := range want {
			w := want[i]
			for _, s := range []*string{w.Name, w.Field, w.Reason} {
				if s != nil {
					*s = bare(r, *s)
				}
			}
			for k := range w.Warnings {
				w.Warnings[k] = bare(r, w.Warnings[k])
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(verdict{})); diff != "" {
			t.Errorf("%s with other names (-want +got):\n%s", file, diff)
		}
	}
}

// bare replaces in a message, where names may stand without their quotes.
func bare(r *strings.Replacer, s string) string {
	s = r.Replace(s)
	if s == "test" {
		return "other"
	}
	return strings.NewReplacer("number 28", "number 61", "2001:db8:0:1ff::", "2001:db8:7:1aa::", "sriov-rdma", "plain-l2").Replace(s)
}
