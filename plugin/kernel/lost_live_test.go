// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestLostLink: a link whose namespace has no path any more is found by the cookie of that and its own index, or by its MAC, in the process
// that lives there; said to be held by it; and removed.
func TestLostLink(t *testing.T) {
	const mac = "02:11:22:33:44:66"
	on := master(t, "pflost0")
	for name, tt := range map[string]struct {
		change []string
		lost   func(ns attach.NetNS) attach.Lost
		found  bool
	}{
		"by its index":     {[]string{"link", "set", "net2", "name", "x2", "address", "02:99:00:00:00:02"}, func(ns attach.NetNS) attach.Lost { return attach.Lost{NetNS: ns} }, true},
		"by its MAC":       {[]string{"link", "set", "net2", "name", "x2"}, func(attach.NetNS) attach.Lost { return attach.Lost{MAC: mac} }, true},
		"by nothing":       {nil, func(attach.NetNS) attach.Lost { return attach.Lost{} }, false},
		"of another inode": {nil, func(ns attach.NetNS) attach.Lost { ns.Cookie++; return attach.Lost{NetNS: ns} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			s := p.open(t)
			at := attach.Place{NS: attach.Pod, Name: "net2"}
			must(t, s.Apply(t.Context(), attach.AddLink{Kind: "macvlan", Master: on, Mode: "bridge", MAC: mac, Link: at}))
			own := attach.OwnLink{Kind: "macvlan", Name: "net2", MAC: mac}
			seen, err := s.Observe(t.Context(), attach.Query{Master: on, Own: own})
			must(t, err)
			own.Index = seen.Link.Index
			if tt.change != nil {
				p.ip(t, tt.change...)
			}
			sleeper := exec.CommandContext(t.Context(), "nsenter", "--net="+p.path, "sleep", "300")
			must(t, sleeper.Start())
			t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
			wait(t, "a process in the namespace", func() bool {
				text, gone := os.ReadFile(fmt.Sprintf("/proc/%d/comm", sleeper.Process.Pid))
				return gone == nil && string(text) == "sleep\n"
			})
			// Without the pod, as where its path is gone; a mount that leads there is another way to it.
			home, err := p.kernel.Open(t.Context(), "")
			must(t, err)
			t.Cleanup(func() { must(t, home.Close()) })
			q := attach.Query{Master: on, Own: own, Lost: new(tt.lost(s.PodNS()))}
			now, err := home.Observe(t.Context(), q)
			must(t, err)
			if (now.Link != nil) != tt.found {
				t.Fatalf("found %+v", now.Link)
			}
			if !tt.found {
				return
			}
			if now.Link.NS != attach.Elsewhere || !now.LinkNS.Same(s.PodNS()) || now.LinkNS.Cookie == 0 {
				t.Errorf("%+v in %+v, want %+v", now.Link, now.LinkNS, s.PodNS())
			}
			held, err := home.Holders(t.Context(), q)
			must(t, err)
			if text := attach.HeldBy(held); len(held) != 1 || !strings.Contains(text, fmt.Sprintf("sleep (pid %d)", sleeper.Process.Pid)) {
				t.Errorf("held: %+v", held)
			}
			step := attach.DelLink{Kind: "macvlan", Link: now.Link.Place, Index: now.Link.Index, In: now.LinkNS}
			for range 2 {
				must(t, home.Apply(t.Context(), step))
			}
			if now, err = home.Observe(t.Context(), q); err != nil || now.Link != nil {
				t.Errorf("left: %+v, %v", now.Link, err)
			}
		})
	}
}
