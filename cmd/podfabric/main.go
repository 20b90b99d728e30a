// SPDX-License-Identifier: Apache-2.0

// Command podfabric is the CNI plugin. It wires the parts together for one call of one verb and lets the CNI library speak
// the protocol; it decides nothing.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/kernel"
)

// version is set by the linker.
var version = "devel"

// A goroutine on the main thread that enters a pod's namespace would leave the process's own view of /proc in the pod, and
// keep that namespace alive: the main thread must stay where it began (style.md M9).
func init() { runtime.LockOSThread() }

func main() {
	started := time.Now()
	// A runtime that was restarted reads neither log nor result any more. That must not end a DEL half way.
	signal.Ignore(syscall.SIGPIPE)
	// What a caller takes from all files that are made would be missing where kubelet and pods read.
	syscall.Umask(0o022)
	p := plugin.New(plugin.Config{
		Node: func() (netconf.Node, error) { return plugin.ReadNode(netconf.NodePath) },
		Open: machine(func(ctx context.Context, netns string) (plugin.Session, error) {
			s, err := kernel.New().Open(ctx, netns)
			if err != nil {
				return nil, err // not s: a nil *Session in the interface would not be nil
			}
			return s, nil
		}),
		Version: version, Delegated: os.Getenv(delegate.Mark) != "",
	})
	about := "podfabric " + version + ": CNI plugin that gives a pod an SR-IOV function and its RDMA device. " +
		"It is called by a container runtime; podfabricctl is the tool for people."
	if err := p.Main(started, about); err != nil {
		if err.Print() != nil {
			os.Exit(2)
		}
		os.Exit(1)
	}
}
