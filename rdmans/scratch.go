// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Scratch makes an empty network namespace and gives a path to it that holds until end is called, or the process dies: nothing
// is mounted, so nothing stays behind, and a device left in it comes home by itself. end may be called more than once.
func Scratch() (path string, end func(), err error) { //nolint:nonamedreturns // says what the values are
	type made struct {
		path string
		err  error
	}
	ready, done := make(chan made), make(chan struct{})
	go func() {
		// Never unlocked: the thread dies with the goroutine, and the namespace with the thread.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ready <- made{err: fmt.Errorf("make a network namespace: %w", err)}
			return
		}
		ready <- made{path: fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())}
		<-done
	}()
	m := <-ready
	return m.path, sync.OnceFunc(func() { close(done) }), m.err
}
