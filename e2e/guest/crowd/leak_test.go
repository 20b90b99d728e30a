// SPDX-License-Identifier: Apache-2.0

//go:build lab

package crowd_test

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/e2e/tally"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/kernel"
)

// TestTwoHundredVFs attaches and detaches VFs with their RDMA devices 200 times, and counts what the kernel, the disk and this process
// hold before and after. Every second pod ends before its DEL; every tenth ADD fails when all is done but the hint, which has no
// volume to go to, and is undone. The plugin runs in this process, since the end of its own would hide what it forgets to close;
// one attachment at a time, since two devices on their way at once may change numbers.
func TestTwoHundredVFs(t *testing.T) {
	const cycles = 200
	deadline(t, patient)
	functions := vfs(t)[:4]
	p := plugin.New(plugin.Config{
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
	// The garbage collector closes what was forgotten.
	t.Cleanup(func() { debug.SetGCPercent(100) })
	debug.SetGCPercent(-1)
	cycle := func(n int, id string) {
		c := call{conf: ofVF(functions[n%len(functions)], ranged), id: id}
		lifeInProcess(t, p, c, n/len(functions))
	}
	for n := range functions {
		cycle(n, fmt.Sprint("first-", n)) // for what is made once
	}
	before, all, own, held, slabs := cni.Look(t), rdmaState(t), tally.Own(t), tally.Held(t), tally.Slabs(t)
	begin := time.Now()
	for n := range cycles {
		cycle(n, fmt.Sprint("leak-", n))
	}
	t.Logf("%d cycles in %v", cycles, time.Since(begin).Round(time.Millisecond))
	before.Unchanged(t)
	tally.Settles(t, func() string { return held.Grown(tally.Held(t), 0) })
	tally.Settles(t, func() string { return own.Grown(tally.Own(t), 0) })
	tally.Settles(t, func() string { return all.Grown(rdmaState(t), 0) })
	tally.Settles(t, func() string { return slabs.Grown(tally.Slabs(t), cycles/3) })
	nothingLeft(t)
}

// lifeInProcess is that of a pod, the nth of its device.
func lifeInProcess(t *testing.T, p *plugin.Plugin, c call, n int) {
	t.Helper()
	ns := newPod(t, c.id)
	raw := netconf.Raw{
		Stdin: []byte(c.conf), ContainerID: c.id, NetNS: ns.Path, IfName: "net1", Path: node.Bin,
		Args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=tests;K8S_POD_NAME=" + c.id,
	}
	fails := n%10 == 9
	if fails {
		raw.Stdin = []byte(strings.Replace(c.conf, `"type":"podfabric"`, `"type":"podfabric","hint":{"require":true}`, 1))
	}
	_, err := p.Add(t.Context(), raw)
	if (err != nil) != fails || fails && !strings.Contains(err.Error(), "hint.require") {
		t.Errorf("ADD of %s: %v", c.id, err)
	}
	if n%2 == 0 {
		ns.end(t)
	} else {
		defer ns.end(t)
	}
	if err := p.Del(t.Context(), raw); err != nil {
		t.Errorf("DEL of %s: %v", c.id, err)
	}
}

// rdmaState counts RDMA devices and verbs devices at home.
func rdmaState(t *testing.T) tally.Tally {
	t.Helper()
	return tally.Tally{"RDMA devices": len(node.RDMA(t, nil)), "verbs devices": len(numbers(t)), "free numbers below": len(holes(t))}
}
