// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/record"
)

// TestAwayKeepsItsAddress: an interface that is not home may still answer to its address, in whatever namespace holds it, so that
// nobody else gets that address until it is home.
func TestAwayKeepsItsAddress(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	for _, pod := range []string{"pod1", "pod2", "pod3"} {
		m.pod(pod)
	}
	before := m.state(t)
	r, other := request{pod: "pod1", dev: 3, ipam: oneAddress}, request{pod: "pod2", dev: 6, ipam: oneAddress}
	their := request{pod: "pod3", dev: 7, ipam: delegated}
	m.mustAdd(t, r)
	m.mustAdd(t, their)
	m.HoldNetNS(netnsOf("pod1"), -1)
	m.HoldNetNS(netnsOf("pod3"), -1)
	for range 2 {
		m.mustDel(t, r)
		m.mustDel(t, their)
		answered(t, m.add(t, other), 106, "10.5.0.5")
	}
	if held := m.ipam.holds(); len(held) != 1 {
		t.Errorf("the other IPAM plugin holds %q", held)
	}
	m.KillNetNS(netnsOf("pod1"))
	m.KillNetNS(netnsOf("pod3"))
	m.mustDel(t, r)
	m.mustDel(t, their)
	m.mustAdd(t, other)
	m.mustDel(t, other)
	m.same(t, "in the end", before)
}

// TestDelWhenTheDelegateHangs: another IPAM plugin that uses up the whole deadline of a DEL costs the address, not the device.
func TestDelWhenTheDelegateHangs(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	before := m.state(t)
	r, next := request{pod: "pod1", dev: 3, ipam: delegated}, request{pod: "pod2", dev: 3}
	m.mustAdd(t, r)
	m.ipam.set(nil, func(ctx context.Context) error {
		<-ctx.Done()
		return delegate.ErrTimeout
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	answered(t, m.plugin.Del(ctx, r.raw()), 11)
	if state := m.stateOf(t, r); state != record.Returning {
		t.Errorf("record is in state %q", state)
	}
	if _, err := os.Stat(filepath.Join(m.dir, "run/pods", uidOf("pod1"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the hint of a device that is gone: %v", err)
	}
	m.mustAdd(t, next)
	m.mustDel(t, next)
	m.ipam.set(nil, nil)
	m.mustDel(t, r)
	m.same(t, "in the end", before)
}
