// SPDX-License-Identifier: Apache-2.0

package leak_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/tally"
)

// workers is how many runtimes work at once.
const workers = 4

// Sections of ipam.
const (
	ranged    = `{"type":"range","subnet":"10.1.0.0/16","scope":"node"}`
	delegated = `{"type":"fakeipam"}`
)

// taken is the MAC of another macvlan: the kernel makes a second one with it, but does not set it up.
const taken = `,"mac":"02:00:00:00:00:99"`

func network(ipam string, more ...string) string {
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","link":"macvlan","master":"m0","rdma":{"mode":"off"},"ipam":%s%s}`,
		ipam, strings.Join(more, ""))
}

// call runs the built plugin. The error is what it answers.
func call(bin, verb, id, netns, conf string) error {
	cmd := exec.Command(filepath.Join(bin, "podfabric"))
	cmd.Env = []string{
		"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + id, "CNI_IFNAME=net1", "CNI_NETNS=" + netns, "CNI_PATH=" + bin,
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=tests;K8S_POD_NAME=" + id,
	}
	cmd.Stdin = strings.NewReader(conf)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s of %s: %w: %s\n%s", verb, id, err, stdout.Bytes(), stderr.Bytes())
	}
	return nil
}

// cycle is one pod's life: every second ends before its DEL comes, as pods do that are killed.
func cycle(bin string, n int) error {
	netns, err := pod()
	if err != nil {
		return err
	}
	id, conf := fmt.Sprint("c", n), network(ranged)
	if n%5 == 0 {
		conf = network(delegated)
	}
	if err = call(bin, "ADD", id, netns, conf); err != nil {
		return err
	}
	if n%2 == 0 {
		return errors.Join(end(netns), call(bin, "DEL", id, netns, conf))
	}
	return errors.Join(call(bin, "DEL", id, netns, conf), end(netns))
}

// refusal is an ADD that fails when its link is there already, and is undone.
func refusal(bin string, n int) error {
	netns, err := pod()
	if err != nil {
		return err
	}
	id, conf := fmt.Sprint("r", n), network([]string{ranged, delegated}[n%2], taken)
	err = call(bin, "ADD", id, netns, conf)
	if err == nil || !strings.Contains(err.Error(), `msg=undoing`) || !strings.Contains(err.Error(), "already in use") {
		return errors.Join(fmt.Errorf("ADD of %s was to fail when it sets the link up, and to be undone: %w", id, err), end(netns))
	}
	return errors.Join(call(bin, "DEL", id, netns, conf), end(netns))
}

// repeat does something n times by several workers. The first failure of a worker is its last turn.
func repeat(t *testing.T, n int, do func(turn int) error) {
	t.Helper()
	turns := make(chan int)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			failed := false
			for turn := range turns {
				if failed {
					continue
				}
				if err := do(turn); err != nil {
					t.Error(err)
					failed = true
				}
			}
		})
	}
	begin := time.Now()
	for turn := range n {
		turns <- turn
	}
	close(turns)
	all.Wait()
	t.Logf("%d turns in %v", n, time.Since(begin).Round(time.Millisecond))
}

// unleaked runs work of n turns after a few of the same, which make what is made once, and compares what there is.
func unleaked(t *testing.T, n int, do func(turn int) error) {
	t.Helper()
	repeat(t, 4*workers, do)
	if t.Failed() {
		return
	}
	mine, everybodys := tally.Own(t), tally.Slabs(t)
	repeat(t, n, func(turn int) error { return do(turn + 4*workers) })
	tally.Settles(t, func() string { return mine.Grown(tally.Own(t), 0) })
	// A third of an object a turn is too much; what others on this computer do meanwhile comes to less.
	tally.Settles(t, func() string { return everybodys.Grown(tally.Slabs(t), n/3) })
}

func TestTwoThousandMacvlans(t *testing.T) {
	bin := programs(t)
	unleaked(t, 2000, func(turn int) error { return cycle(bin, turn) })
}

// The kernel's counters of everybody cannot tell a hundred objects from what others do; the machine's own can.
func TestHundredRefusals(t *testing.T) {
	bin := programs(t)
	repeat(t, 4*workers, func(turn int) error { return refusal(bin, turn) })
	before := tally.Own(t)
	repeat(t, 100, func(turn int) error { return refusal(bin, turn) })
	tally.Settles(t, func() string { return before.Grown(tally.Own(t), 0) })
}
