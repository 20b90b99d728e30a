// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
)

// TestIPAMPluginThatIsNotThere: a misspelt ipam.type is somebody else's plugin to us. It fails ADD before anything is recorded,
// and no DEL owes it an answer: kubelet would ask for ever.
func TestIPAMPluginThatIsNotThere(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	before := m.state(t)
	r := request{pod: "pod1", dev: 3, ipam: delegated}
	m.ipam.missing = delegate.ErrNotFound
	m.ipam.onDel = func(context.Context) error { return delegate.ErrNotFound }
	_, err := m.plugin.Add(t.Context(), r.raw())
	if !errors.Is(err, delegate.ErrNotFound) || plugin.Answer(err).Code != netconf.CodeDelegate {
		t.Errorf("ADD: %v", err)
	}
	m.same(t, "ADD", before)
	for range 2 {
		if err := m.plugin.Del(t.Context(), r.raw()); err != nil {
			t.Errorf("DEL: %v", err)
		}
	}
	m.same(t, "DEL", before)
}
