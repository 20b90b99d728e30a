// SPDX-License-Identifier: Apache-2.0

// Package arch_test keeps the architecture: which package may import what, and why not; and what every file and package must
// have. docs/architecture.md draws the same picture.
package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/podfabric/podfabric"

// rule says what packages must not import. Packages are written without the module's path; "x/..." is x and all below it, and
// "..." everything.
type rule struct {
	of      []string // the packages that it binds
	notOf   []string // exceptions
	deny    []string // imports that they must not have
	allow   []string // exceptions
	through bool     // also through other packages
	because string
}

// effects are the imports of a package that looks at the machine or changes it.
var effects = []string{
	"os/...", "io/ioutil", "net", "net/http/...", "syscall", "path/filepath", "log/...", "math/rand/...",
	"golang.org/x/sys/...", "github.com/vishvananda/...", "github.com/google/renameio/...", "github.com/gofrs/flock",
	"github.com/Mellanox/rdmamap", "github.com/k8snetworkplumbingwg/sriovnet/...",
}

var rules = []rule{
	{
		of:      []string{"netconf", "plugin/attach", "nccl", "ipam", "rdmans/pci", "rdmans/bus"},
		deny:    effects,
		because: "it decides and does nothing else: the same input gives the same answer on any machine, and tests need no machine",
	},
	{
		of:      []string{"netconf", "nccl"},
		deny:    []string{module + "/..."},
		allow:   []string{module + "/rdmans/pci", module + "/rdmans/bus", module + "/ipam"},
		because: "it stands at the bottom: everything may use it, so it may use nothing but PCI addresses and address ranges",
	},
	{
		of:      []string{"nad", "peer"},
		deny:    []string{module + "/..."},
		allow:   []string{module + "/nad"},
		because: "what others' configurations mean is known without podfabric's own; podfabricctl puts the two together",
	},
	{
		of:      []string{"..."},
		notOf:   []string{"nad", "e2e/..."},
		deny:    []string{"go.yaml.in/yaml/...", "sigs.k8s.io/yaml/...", "gopkg.in/yaml.v3"},
		because: "CNI speaks JSON; only the reader of people's files meets YAML, and nothing on the path of a pod's start",
	},
	{
		of:      []string{"plugin/attach"},
		deny:    []string{module + "/..."},
		allow:   []string{module + "/netconf", module + "/rdmans/pci", module + "/rdmans/bus"},
		because: "plans are made from a configuration and facts alone",
	},
	{
		of:      []string{"..."},
		notOf:   []string{"cmd/...", "plugin/fault"}, // stands between the two, and only under its build tag
		deny:    []string{module + "/plugin"},
		because: "the verbs are the top: what another package needs of them belongs further down",
	},
	{
		of:      []string{"rdmans/..."},
		deny:    []string{module + "/..."},
		allow:   []string{module + "/rdmans/..."},
		because: "it is a library of its own, usable without the rest",
	},
	{
		of:      []string{"ipam/..."},
		deny:    []string{module + "/..."},
		allow:   []string{module + "/ipam/..."},
		because: "it is a library of its own, usable without the rest",
	},
	{
		of:      []string{"rdmans/...", "ipam/...", "plugin/link"},
		deny:    []string{"github.com/containernetworking/..."},
		allow:   []string{"github.com/containernetworking/plugins/pkg/ns"}, // enters a namespace, knows no CNI
		because: "it knows nothing of CNI: errors become CNI errors in plugin, in one place",
	},
	{
		of:      []string{"plugin/link"},
		deny:    []string{module + "/..."},
		allow:   []string{module + "/rdmans", module + "/rdmans/bus", module + "/rdmans/pci", module + "/rdmans/sysfs"},
		because: "netdevs know nothing of attachments; plugin/kernel translates steps for them",
	},
	{
		of:      []string{"..."},
		notOf:   []string{"rdmans", "plugin/link", "plugin/kernel"},
		deny:    []string{"github.com/vishvananda/..."},
		because: "one thread in the wrong namespace, or one interrupted dump taken for the truth, is enough: netlink is spoken in few places",
	},
	{
		of:      []string{"..."},
		notOf:   []string{"rdmans/...", "plugin/link", "plugin/kernel", "cmd/podfabricctl"}, // podfabricctl reads the node it runs on
		deny:    []string{"github.com/Mellanox/rdmamap", "github.com/k8snetworkplumbingwg/sriovnet/..."},
		because: "they read the sysfs of whoever asks and partly swallow errors; where that is safe is known to few packages",
	},
	{
		of: []string{"plugin/record", "plugin/hint", "plugin/lock", "plugin/statedir", "plugin/delegate"},
		deny: []string{
			module + "/plugin/kernel", module + "/plugin/link", module + "/rdmans", module + "/rdmans/sysfs",
		},
		because: "it deals in files and data: facts about the machine are handed to it",
	},
	{
		of:      []string{"cmd/podfabric"},
		deny:    []string{"k8s.io/...", "sigs.k8s.io/...", "github.com/containerd/...", "github.com/prometheus/...", "github.com/spf13/...", "google.golang.org/grpc/..."},
		through: true,
		because: "it is on the path of every pod's start, and must run when nothing else does",
	},
	{
		of:      []string{"..."},
		notOf:   []string{"cmd/podfabricd/..."},
		deny:    []string{"k8s.io/...", "sigs.k8s.io/...", "github.com/containerd/nri/...", "github.com/prometheus/..."},
		because: "only the agent talks to Kubernetes, NRI and Prometheus",
	},
	{
		of:      []string{"..."},
		notOf:   []string{"e2e/..."},
		deny:    []string{module + "/e2e/...", "testing/...", "github.com/google/go-cmp/...", "github.com/rogpeppe/..."},
		because: "what serves tests must not be shipped",
	},
	{
		of:      []string{"..."},
		deny:    []string{"github.com/pkg/errors", "io/ioutil", "github.com/sirupsen/logrus", "k8s.io/klog/..."},
		because: "the standard library has it",
	},
}

// graph is who imports whom, without tests: import path to import paths.
type graph map[string][]string

// under tells whether a path fits a pattern.
func under(path, pattern string) bool {
	stem, wild := strings.CutSuffix(pattern, "...")
	if !wild {
		return path == pattern
	}
	return stem == "" || path == strings.TrimSuffix(stem, "/") || strings.HasPrefix(path, stem)
}

func underAny(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return under(path, p) })
}

func (r rule) binds(pkg string) bool {
	local, ours := strings.CutPrefix(pkg, module+"/")
	// Fakes for tests live in packages named so; they are bound as tests are.
	if !ours || strings.HasSuffix(local, "test") {
		return false
	}
	return underAny(local, r.of) && !underAny(local, r.notOf)
}

func (r rule) forbids(imported string) bool {
	return underAny(imported, r.deny) && !underAny(imported, r.allow)
}

// offences are the imports of a graph that the rules forbid, as sentences, in order.
func offences(g graph, rules []rule) []string {
	var found []string
	for pkg := range g {
		for _, r := range rules {
			if !r.binds(pkg) {
				continue
			}
			for _, imported := range reach(g, pkg, r.through) {
				if r.forbids(imported) {
					found = append(found, fmt.Sprintf("%s must not import %s: %s", strings.TrimPrefix(pkg, module+"/"), imported, r.because))
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// reach are the imports of a package: its own, or with through those of its imports too.
func reach(g graph, pkg string, through bool) []string {
	if !through {
		return g[pkg]
	}
	seen := map[string]bool{}
	for todo := slices.Clone(g[pkg]); len(todo) > 0; {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[next] {
			seen[next] = true
			todo = append(todo, g[next]...)
		}
	}
	var all []string
	for p := range seen {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath string
	Imports    []string
}

// imports reads the module's graph, files under build tags included. -e: that everything builds is other tests' business.
func imports(t *testing.T) graph {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-tags", "lab faults", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	g := graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return g
		case err != nil:
			t.Fatal(err)
		}
		g[p.ImportPath] = p.Imports
	}
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, o := range offences(imports(t), rules) {
		t.Error(o)
	}
}

// TestRulesCatch plants an offence against each rule, and what is nearest to it and allowed.
func TestRulesCatch(t *testing.T) {
	t.Parallel()
	const m = module + "/"
	for _, tc := range []struct {
		name  string
		graph graph
		want  []string // "package -> import"
	}{
		{"pure package opens files", graph{m + "netconf": {"os", "net/netip", "fmt"}}, []string{"netconf -> os"}},
		{"pure package runs programs", graph{m + "plugin/attach": {"os/exec"}}, []string{"plugin/attach -> os/exec"}},
		{"choosing addresses reads files, leasing may", graph{m + "ipam": {"os"}, m + "ipam/lease": {"os"}}, []string{"ipam -> os"}},
		{"nccl knows a plan", graph{m + "nccl": {m + "plugin/attach", m + "rdmans/pci"}}, []string{"nccl -> " + m + "plugin/attach"}},
		{"reader of files knows podfabric's keys", graph{m + "nad": {m + "netconf"}, m + "peer": {m + "nad", m + "netconf"}}, []string{"nad -> " + m + "netconf", "peer -> " + m + "netconf"}},
		{"YAML elsewhere", graph{m + "peer": {"go.yaml.in/yaml/v3"}, m + "nad": {"go.yaml.in/yaml/v3"}}, []string{"peer -> go.yaml.in/yaml/v3"}},
		{"plan asks the kernel", graph{m + "plugin/attach": {m + "netconf", m + "plugin/kernel"}}, []string{"plugin/attach -> " + m + "plugin/kernel"}},
		{"verbs imported from below", graph{m + "plugin/kernel": {m + "plugin"}, m + "cmd/podfabric": {m + "plugin"}}, []string{"plugin/kernel -> " + m + "plugin"}},
		{"library leans on the product", graph{m + "rdmans": {m + "netconf", m + "rdmans/sysfs"}}, []string{"rdmans -> " + m + "netconf"}},
		{"ipam leans on the product", graph{m + "ipam/lease": {m + "netconf", m + "ipam"}}, []string{"ipam/lease -> " + m + "netconf"}},
		{
			"library knows CNI",
			graph{m + "rdmans": {"github.com/containernetworking/cni/pkg/types", "github.com/containernetworking/plugins/pkg/ns"}},
			[]string{"rdmans -> github.com/containernetworking/cni/pkg/types"},
		},
		{"netdevs know attachments", graph{m + "plugin/link": {m + "plugin/attach", m + "rdmans"}}, []string{"plugin/link -> " + m + "plugin/attach"}},
		{"netlink elsewhere", graph{m + "plugin": {"github.com/vishvananda/netlink"}, m + "rdmans": {"github.com/vishvananda/netlink"}}, []string{"plugin -> github.com/vishvananda/netlink"}},
		{"rdmamap elsewhere", graph{m + "plugin": {"github.com/Mellanox/rdmamap"}}, []string{"plugin -> github.com/Mellanox/rdmamap"}},
		{"files look at the machine", graph{m + "plugin/hint": {m + "rdmans", m + "rdmans/pci"}}, []string{"plugin/hint -> " + m + "rdmans"}},
		{
			"plugin reaches cobra through another",
			graph{m + "cmd/podfabric": {m + "plugin"}, m + "plugin": {"x.test/y"}, "x.test/y": {"github.com/spf13/cobra"}, m + "cmd/podfabricctl": {"github.com/spf13/cobra"}},
			[]string{"cmd/podfabric -> github.com/spf13/cobra"},
		},
		{"Kubernetes outside the agent", graph{m + "cmd/podfabricctl": {"k8s.io/client-go/rest"}, m + "cmd/podfabricd": {"k8s.io/client-go/rest"}}, []string{"cmd/podfabricctl -> k8s.io/client-go/rest"}},
		{"tests' tools shipped, but a fake may use them", graph{m + "plugin": {"testing"}, m + "plugin/attach/attachtest": {"testing"}}, []string{"plugin -> testing"}},
		{"old libraries", graph{m + "plugin": {"github.com/pkg/errors"}}, []string{"plugin -> github.com/pkg/errors"}},
		{"others' packages are theirs", graph{"github.com/else/netconf": {"os"}, m + "netconfig": {"os"}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, o := range offences(tc.graph, rules) {
				sentence, _, _ := strings.Cut(o, ": ")
				got = append(got, strings.Replace(sentence, " must not import ", " -> ", 1))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("offences (-want +got):\n%s", diff)
			}
		})
	}
}
