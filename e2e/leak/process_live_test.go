// SPDX-License-Identifier: Apache-2.0

package leak_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"testing"

	"github.com/podfabric/podfabric/e2e/tally"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/kernel"
)

// inProcess builds the plugin as its binary does, but here.
func inProcess() *plugin.Plugin {
	return plugin.New(plugin.Config{
		Node: func() (netconf.Node, error) { return plugin.ReadNode(netconf.NodePath) },
		Open: func(ctx context.Context, netns string) (plugin.Session, error) {
			s, err := kernel.New().Open(ctx, netns)
			if err != nil {
				return nil, err // not s: a nil *Session in the interface would not be nil
			}
			return s, nil
		},
		Stderr: io.Discard, Version: "test",
	})
}

// TestNothingHeldInProcess looks at the process itself, which a plugin's end hides: every verb must close what it opened.
func TestNothingHeldInProcess(t *testing.T) {
	bin, p := programs(t), inProcess()
	// The garbage collector closes what was forgotten.
	t.Cleanup(func() { debug.SetGCPercent(100) })
	debug.SetGCPercent(-1)
	life := func(turn int) error {
		netns, err := pod()
		if err != nil {
			return err
		}
		raw := netconf.Raw{
			Stdin: []byte(network(ranged)), ContainerID: fmt.Sprint("p", turn), NetNS: netns, IfName: "net1", Path: bin,
			Args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=tests;K8S_POD_NAME=p",
		}
		switch turn % 3 {
		case 1:
			raw.Stdin = []byte(network(ranged, taken))
		case 2:
			raw.Stdin = []byte(network(delegated))
		}
		_, err = p.Add(t.Context(), raw)
		if (err != nil) != (turn%3 == 1) {
			err = fmt.Errorf("ADD of turn %d: %w", turn, err)
		} else {
			err = nil
			if turn%3 != 1 {
				err = p.Check(t.Context(), raw)
			}
		}
		gc := raw
		gc.Stdin = []byte(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","cni.dev/valid-attachments":[]}`)
		err = errors.Join(err, p.Status(t.Context(), raw), p.GC(t.Context(), gc), p.Del(t.Context(), raw), p.Del(t.Context(), raw))
		return errors.Join(err, end(netns))
	}
	repeat(t, 4*workers, life)
	mine, before, threads := tally.Own(t), tally.Held(t), len(tally.List(t, "/proc/self/task"))
	repeat(t, 300, life)
	tally.Settles(t, func() string { return before.Grown(tally.Held(t), 0) })
	tally.Settles(t, func() string { return mine.Grown(tally.Own(t), 0) })
	// The Go runtime keeps threads for the next time that many block at once.
	if now := len(tally.List(t, "/proc/self/task")); now > threads+30 {
		t.Errorf("%d threads, %d before", now, threads)
	}
}
