// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/hint/outsidetest"
)

// TestHostileRace: while ADD and DEL come and go, the pod exchanges its files, folders and links as fast as it can, in one step, so
// that there is no moment without one; and so does somebody with the volume itself, which no pod can.
func TestHostileRace(t *testing.T) {
	t.Parallel()
	for _, what := range append(planted(), "the volume", "the folder of the state") {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "podfabric")
			o := outsidetest.New(t, filepath.Dir(n.store.Root))
			good := filepath.Join(n.volume, what)
			switch what {
			case "the volume":
				good = n.volume
			case "the folder of the state":
				good = filepath.Join(n.store.Root, "pods", uid)
				must(t, os.MkdirAll(filepath.Dir(good), 0o755))
			}
			evil := filepath.Join(filepath.Dir(n.store.Root), "evil")
			o.Look(t)
			stop, done := make(chan struct{}), make(chan int)
			go swap(good, evil, o, stop, done)
			rounds := 0
			for end := time.Now().Add(*raceTime); time.Now().Before(end); rounds++ {
				f := attachment(1, "10.1.0.5/24")
				if _, err := n.store.Put(t.Context(), uid, f); err != nil && !raced(what) {
					t.Errorf("ADD: %v", err)
				}
				if err := n.store.Drop(t.Context(), uid, attach.Owner{ContainerID: sandbox, IfName: "net1"}); err != nil && !raced(what) {
					t.Errorf("DEL: %v", err)
				}
			}
			close(stop)
			swaps := <-done
			t.Logf("%d rounds, %d exchanges", rounds, swaps)
			if rounds < 10 || swaps < 100 {
				t.Errorf("only %d rounds and %d exchanges prove nothing", rounds, swaps)
			}
			o.Unchanged(t)
		})
	}
}

// raceTime is how long each race runs: go test ./plugin/hint -run TestHostileRace -v -race-time 1m.
var raceTime = flag.Duration("race-time", 2*time.Second, "how long each race runs")

// raced tells what only root can exchange; ADD may fail over that, but leads nowhere else.
func raced(what string) bool { return strings.HasPrefix(what, "the ") }

// swap exchanges what stands at good with links that lead out and with folders, until stop.
func swap(good, evil string, o *outsidetest.Tree, stop <-chan struct{}, done chan<- int) {
	for swaps := 0; ; {
		for _, plant := range []func() error{
			func() error { return os.Symlink(o.File("folder"), evil) }, func() error { return os.Symlink(o.File("file"), evil) },
			func() error { return os.MkdirAll(evil+"/a", 0o777) }, func() error { return unix.Mkfifo(evil, 0o666) },
			func() error { return os.Symlink("../outside/folder", evil) },
		} {
			_ = os.RemoveAll(evil)
			_ = plant()
			for range 20 {
				if unix.Renameat2(unix.AT_FDCWD, evil, unix.AT_FDCWD, good, unix.RENAME_EXCHANGE) == nil {
					swaps++
				} else if unix.Renameat2(unix.AT_FDCWD, evil, unix.AT_FDCWD, good, unix.RENAME_NOREPLACE) == nil {
					swaps++
				}
			}
			select {
			case <-stop:
				done <- swaps
				return
			default:
			}
		}
	}
}
