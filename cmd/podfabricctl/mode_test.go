// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/rdmans"
)

// modeNode is a node whose kernel refuses to change the mode while there are other namespaces, as the real one does.
type modeNode struct {
	root      string
	mode      rdmans.Mode // empty: no RDMA subsystem
	others    []rdmans.Namespace
	hidden    bool // another namespace that nobody can see
	initramfs string
	user      bool // not root
}

func (n *modeNode) Mode() (rdmans.Mode, error) {
	if n.mode == "" {
		return "", rdmans.ErrNoRDMA
	}
	return n.mode, nil
}

func (n *modeNode) SetMode(m rdmans.Mode) error {
	if len(n.others) > 0 || n.hidden {
		return fmt.Errorf("set the mode: %w", rdmans.ErrBusy)
	}
	n.mode = m
	return nil
}

func (n *modeNode) Namespaces(context.Context) ([]rdmans.Namespace, error) { return n.others, nil }
func (n *modeNode) Initramfs(context.Context) (bool, bool) {
	return n.initramfs == "has", n.initramfs != ""
}
func (n *modeNode) Root() string     { return n.root }
func (n *modeNode) Privileged() bool { return !n.user }

// write puts files below the node's root; a name that ends in / is a folder.
func (n *modeNode) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(n.root, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestModeSet(t *testing.T) {
	t.Parallel()
	const head = "# RDMA namespace mode, 0 exclusive, 1 shared; written by podfabricctl mode set\n"
	const ours = "/etc/modprobe.d/ib_core.conf"
	const sno = "/etc/modprobe.d/sriov_network_operator_modules_config.conf"
	pods := []rdmans.Namespace{{
		ID: rdmans.ID{Dev: 4, Ino: 4026532001}, Holders: []rdmans.Holder{{Mount: "/run/netns/blue"}, {PID: 71, Comm: "nginx"}},
	}}
	tests := []struct {
		name  string
		node  modeNode
		files map[string]string
		args  string
		code  int
		mode  rdmans.Mode // afterwards
		text  string      // of our file afterwards; empty: none
		out   []string    // must occur in the output
	}{
		{
			name: "free", node: modeNode{mode: rdmans.Shared, initramfs: "no"}, args: "exclusive", mode: rdmans.Exclusive,
			text: head + "options ib_core netns_mode=0\n",
			out: []string{
				"the mode is exclusive now, it was shared", "written for every boot to come: " + ours, "ib_core.netns_mode=0",
				"k8s-rdma-shared-dev-plugin refuses",
			},
		},
		{
			name: "back to shared", node: modeNode{mode: rdmans.Exclusive, initramfs: "has"}, args: "shared", mode: rdmans.Shared,
			files: map[string]string{ours: head + "options ib_core netns_mode=0\n"},
			text:  head + "options ib_core netns_mode=1\n",
			out:   []string{"the mode is shared now", "ib_core.netns_mode=1", "rdma-cni fails", "ib_core is in the initramfs", "update-initramfs -u"},
		},
		{
			name: "already", node: modeNode{mode: rdmans.Exclusive, others: pods}, args: "exclusive", mode: rdmans.Exclusive,
			files: map[string]string{ours: head + "options ib_core netns_mode=0\n"}, text: head + "options ib_core netns_mode=0\n",
			out: []string{"the mode is exclusive already"},
		},
		{
			name: "namespaces in the way", node: modeNode{mode: rdmans.Shared, others: pods}, args: "exclusive", code: 1, mode: rdmans.Shared,
			text: head + "options ib_core netns_mode=0\n",
			out: []string{
				"the mode stays shared until the next boot", "in the way: /run/netns/blue, held by /run/netns/blue, nginx (pid 71)",
				"if ib_core is in the initramfs, which could not be looked into",
			},
		},
		{
			name: "a namespace that nobody sees", node: modeNode{mode: rdmans.Shared, hidden: true}, args: "exclusive", code: 1, mode: rdmans.Shared,
			text: head + "options ib_core netns_mode=0\n", out: []string{"held by a socket alone"},
		},
		{
			name: "no RDMA", node: modeNode{}, args: "exclusive", text: head + "options ib_core netns_mode=0\n",
			out: []string{"the mode is set when ib_core is"},
		},
		{
			name: "dry run", node: modeNode{mode: rdmans.Shared, others: pods}, args: "exclusive --dry-run", code: 1, mode: rdmans.Shared,
			out: []string{"would be written for every boot to come", "in the way: /run/netns/blue"},
		},
		{
			name: "other options stay", node: modeNode{mode: rdmans.Shared}, args: "exclusive", mode: rdmans.Exclusive,
			files: map[string]string{ours: "# mine\noptions ib_core send_queue_size=64 \\\n  netns_mode=1\noptions ib_umad x=1\n"},
			text:  "# mine\noptions ib_core send_queue_size=64\noptions ib_umad x=1\n" + head + "options ib_core netns_mode=0\n",
		},
		{
			name: "the SR-IOV network operator's", node: modeNode{mode: rdmans.Shared}, args: "exclusive", code: 1, mode: rdmans.Shared,
			files: map[string]string{sno: "options ib_core netns_mode=1\n"},
			out: []string{
				"nothing was changed: the SR-IOV network operator sets the mode of this node, to shared in " + sno,
				"kind: SriovNetworkPoolConfig", "rdmaMode: exclusive",
			},
		},
		{
			name: "another file", node: modeNode{mode: rdmans.Shared}, args: "exclusive", code: 1, mode: rdmans.Shared,
			files: map[string]string{"/usr/lib/modprobe.d/rdma.conf": "options ib_core netns_mode=1\n"},
			out:   []string{"remove netns_mode from /usr/lib/modprobe.d/rdma.conf", "is not podfabric's"},
		},
		{
			name: "a kernel argument", node: modeNode{mode: rdmans.Shared}, args: "exclusive", code: 1, mode: rdmans.Shared,
			files: map[string]string{"/proc/cmdline": "quiet ib_core.netns_mode=1\n"},
			out:   []string{"change the kernel argument ib_core.netns_mode, which sets shared, to ib_core.netns_mode=0"},
		},
		{
			name: "a kernel argument that says the same", node: modeNode{mode: rdmans.Shared}, args: "exclusive", mode: rdmans.Exclusive,
			files: map[string]string{"/proc/cmdline": "quiet ib_core.netns_mode=0\n"},
			out:   []string{"kernel argument sets exclusive for the next boot already (operator)"},
		},
		{
			name: "the same elsewhere, ours says otherwise", node: modeNode{mode: rdmans.Shared}, args: "exclusive", mode: rdmans.Exclusive,
			files: map[string]string{sno: "options ib_core netns_mode=0\n", ours: head + "options ib_core netns_mode=1\n"},
			text:  head + "options ib_core netns_mode=0\n",
		},
		{
			name: "OpenShift", node: modeNode{mode: rdmans.Shared}, args: "exclusive", code: 1, mode: rdmans.Shared,
			files: map[string]string{machineConfig: `{"spec":{"config":{"storage":{"files":[{"path":"/etc/modprobe.d/ib_core.conf"}]}}}}`},
			out:   []string{"change the MachineConfig of this node", "spec.kernelArguments: [ib_core.netns_mode=0]"},
		},
		{
			name: "not root", node: modeNode{mode: rdmans.Shared, user: true}, args: "exclusive", code: 2, mode: rdmans.Shared,
			out: []string{"run it as root"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			n := tc.node
			n.root = t.TempDir()
			n.write(t, tc.files)
			out, code := runMode(t, &n, tc.args)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if n.mode != tc.mode {
				t.Errorf("mode is %q, want %q", n.mode, tc.mode)
			}
			for _, want := range tc.out {
				if !strings.Contains(out, want) {
					t.Errorf("output lacks %q:\n%s", want, out)
				}
			}
			text, err := os.ReadFile(filepath.Join(n.root, ours))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.text, string(text)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", ours, diff)
			}
			left, err := filepath.Glob(filepath.Join(n.root, "etc/modprobe.d/.*"))
			if err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v, %v", left, err)
			}
			if tc.code == 0 && n.mode != "" {
				// What it said about the next boot has to hold.
				if list, err := persistent(n.root); err != nil || nextBoot(list) != string(n.mode) {
					t.Errorf("next boot: %v, %v", list, err)
				}
			}
		})
	}
}

// runMode runs "mode set" on a node and gives its output, both streams together, and the exit code.
func runMode(t *testing.T, n moder, args string) (string, int) {
	t.Helper()
	var out strings.Builder
	s := streams{strings.NewReader(""), &out, &out}
	code := finish(t.Context(), newModeSet(n, s), strings.Fields(args), s)
	return out.String(), code
}

func TestModeFileIsALink(t *testing.T) {
	t.Parallel()
	n := &modeNode{root: t.TempDir(), mode: rdmans.Shared}
	n.write(t, map[string]string{"/etc/modprobe.d/elsewhere": "x"})
	must(t, os.Symlink("elsewhere", filepath.Join(n.root, modeFile)))
	out, code := runMode(t, n, "exclusive")
	if code != 1 || !strings.Contains(out, "remove what stands there") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
	if text, err := os.ReadFile(filepath.Join(n.root, "/etc/modprobe.d/elsewhere")); err != nil || string(text) != "x" {
		t.Errorf("the link was followed: %q, %v", text, err)
	}
}

func TestOptionOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text, want string
		found            bool
	}{
		{"empty", "", "", false},
		{"plain", "options ib_core netns_mode=0", "0", true},
		{"tabs and blanks", "  options\tib_core\tnetns_mode=1  ", "1", true},
		{"minus for underscore", "options ib-core netns_mode=0", "0", true},
		{"comment", "# options ib_core netns_mode=0", "", false},
		{"another module", "options ib_uverbs netns_mode=0", "", false},
		{"a name that begins alike", "options ib_core netns_mode_x=0", "", false},
		{"continued", "options ib_core \\\nnetns_mode=0", "0", true},
		{"the last one counts", "options ib_core netns_mode=0\noptions ib_core netns_mode=1", "1", true},
		{"no value", "options ib_core", "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got, found := optionOf(tc.text); got != tc.want || found != tc.found {
				t.Errorf("optionOf = %q, %t, want %q, %t", got, found, tc.want, tc.found)
			}
		})
	}
}

// FuzzModeText: whatever stood in the file, afterwards it sets the mode, once more changes nothing, and other modules' lines stay.
func FuzzModeText(f *testing.F) {
	f.Add("options ib_core netns_mode=1\n")
	f.Add("options ib_core a=1 \\\n netns_mode=0 b\n\n# x")
	f.Fuzz(func(t *testing.T, old string) {
		text := modeText(old, rdmans.Exclusive)
		if value, ok := optionOf(text); !ok || modeOf(value) != "exclusive" {
			t.Errorf("%q became %q, which sets %q", old, text, value)
		}
		if again := modeText(text, rdmans.Exclusive); again != text {
			t.Errorf("%q became %q", text, again)
		}
	})
}
