// SPDX-License-Identifier: Apache-2.0

package rdmans_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/podfabric/podfabric/rdmans"
)

// TestScratch makes a namespace of its own and sees it die.
func TestScratch(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("run this test as root: it makes a network namespace")
	}
	self, err := rdmans.Self()
	if err != nil {
		t.Fatal(err)
	}
	path, end, err := rdmans.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ns, err := rdmans.OpenNS(path)
	if err != nil {
		t.Fatal(err)
	}
	id := ns.ID()
	if id == self.ID() {
		t.Error("it is the namespace of the process")
	}
	var inside string
	if err = ns.Do(func() error {
		inside, err = os.Readlink("/proc/thread-self/ns/net")
		return err
	}); err != nil || inside != id.String() {
		t.Errorf("inside is %s, %v, want %s", inside, err, id)
	}
	if err = ns.Close(); err != nil {
		t.Fatal(err)
	}
	end()
	end()
	for deadline := time.Now().Add(10 * time.Second); ; {
		alive, err := rdmans.Alive(path, id)
		if err != nil && !errors.Is(err, rdmans.ErrNoNamespace) {
			t.Fatal(err)
		}
		if !alive {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the namespace outlived its end by 10 s")
		}
	}
}
