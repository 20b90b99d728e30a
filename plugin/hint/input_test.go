// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/hint"
)

// A part that a crash or another version left unreadable costs the pod a rail, not the pod.
func TestUnreadablePart(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	n.put(t, attachment(1, "10.1.0.5/24"))
	path := filepath.Join(n.store.Root, "fragments", uid, sandbox, "net1.json")
	for _, text := range []string{"", "{", `{"version":2}`, `{"version":1,"owner":{"containerID":"x","ifname":"y"}}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		warnings := n.put(t, attachment(2, "10.2.0.5/24"))
		if len(warnings) != 1 || !strings.Contains(warnings[0], "lacks net1") {
			t.Errorf("%q: warnings %q", text, warnings)
		}
	}
	n.drop(t, attachment(1))
	if warnings := n.put(t, attachment(2, "10.2.0.5/24")); len(warnings) > 0 {
		t.Errorf("after it was dropped: %q", warnings)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	for _, bad := range []struct{ key, container, ifname string }{
		{"..", "c", "net1"},
		{"a/b", "c", "net1"},
		{uid, "../c", "net1"},
		{uid, "c", ".."},
		{uid, "c", ""},
		{uid, "c\x00", "net1"},
		{"", "", "net1"},
	} {
		f := attachment(1, "10.1.0.5/24")
		f.Owner = attach.Owner{ContainerID: bad.container, IfName: bad.ifname}
		if _, err := n.store.Put(t.Context(), bad.key, f); !errors.Is(err, hint.ErrName) {
			t.Errorf("Put(%+v): %v", bad, err)
		}
		if err := n.store.Drop(t.Context(), bad.key, f.Owner); !errors.Is(err, hint.ErrName) {
			t.Errorf("Drop(%+v): %v", bad, err)
		}
	}
	if got := n.tree(t); len(got) > 0 {
		t.Errorf("made %v", got)
	}
}

// A device renamed to something that would change NCCL's list costs the hint, not the pod.
func TestHostileDeviceName(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	f := attachment(1, "10.1.0.5/24")
	f.RDMA.Device = "mlx5_0\nNCCL_NET_PLUGIN=/tmp/x.so"
	if warnings := n.put(t, f); len(warnings) == 0 {
		t.Error("nothing is warned of")
	}
	if text := n.pod(t, "nccl.conf"); strings.Contains(text, "=") || strings.Contains(text, "\nNCCL") {
		t.Errorf("got:\n%s", text)
	}
}

func FuzzDecodeFragment(f *testing.F) {
	f.Add([]byte(`{"version":1,"owner":{"containerID":"c1","ifname":"net1"},"addresses":["10.0.0.1/24"],"rdma":{"gids":[{"index":-1,"addr":""}]}}`))
	f.Add([]byte(`{"version":1,"pci":"0000:3b:00.2","rail":3,"hint":{"role":"x","nccl":"y"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		part, err := hint.DecodeFragment(text)
		if err != nil {
			if !errors.Is(err, hint.ErrFragment) {
				t.Errorf("%v does not wrap ErrFragment", err)
			}
			return
		}
		// Whatever was decoded, rendering it must not end the plugin; what it renders is checked with good parts.
		part.Owner = attach.Owner{ContainerID: "c1", IfName: "net1"}
		part.Pod.UID = ""
		_, _ = newNode(t).store.Put(t.Context(), "", part)
	})
}
