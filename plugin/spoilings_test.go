// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podfabric/podfabric/plugin/record"
)

// spoiling puts something else in the place of a file that podfabric wrote. text is what it held.
type spoiling struct {
	name string
	do   func(t testing.TB, file string, text []byte)
	good bool // it can be read all the same
	held bool // it cannot be removed as a file is, and whose it is nobody knows, so that somebody must
}

// spoilings are what a person, another program, another version, a full disk or a crash may leave in a file's place.
func spoilings(text []byte) []spoiling {
	var out []spoiling
	for n := 0; n < len(text)-1; n += max(1, len(text)/12) {
		out = append(out, holding(fmt.Sprintf("its first %d bytes", n), string(text[:n])))
	}
	for _, foreign := range []string{
		"{}", "[]", "null", `"text"`, "\x00\x00\x00\x00", "\xff\xfe{", `{"version":"two"}`, `{"version":0}`, `{"version":-1}`, `{"version":1e99}`,
		`{"version":1}`, `{"version":2,"state":"eaten"}`, `{"kind":"Pod","version":1,"metadata":{"name":"x"}}`,
		`{"version":2,"state":"done","owner":{"containerID":"../../etc","ifname":"x"}}`,
		`{"version":2,"state":"done","owner":{"containerID":"cid-bystander","ifname":"net1"},"device":"0000:3b:00.2"}`,
		strings.Repeat("[", 1<<16), `{"version":99,"compatible":99,"state":"done"}`, `{"version":99}`,
	} {
		out = append(out, holding(fmt.Sprintf("%.60q", foreign), foreign))
	}
	out = append(out, holding("more than a record can be", strings.Repeat(" ", 5<<20)))
	return append(out, otherThings()...)
}

func holding(name, text string) spoiling {
	return spoiling{name: name, do: func(t testing.TB, file string, _ []byte) {
		t.Helper()
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}}
}

// otherThings are what is no file.
func otherThings() []spoiling {
	instead := func(name string, do func(file string) error) spoiling {
		return spoiling{name: name, do: func(t testing.TB, file string, _ []byte) {
			t.Helper()
			must(t, os.RemoveAll(file))
			must(t, do(file))
		}}
	}
	full := instead("a folder with something in it", func(file string) error { return os.MkdirAll(file+"/of/another", 0o700) })
	full.held = true
	return []spoiling{
		instead("a folder", func(file string) error { return os.Mkdir(file, 0o700) }),
		full,
		instead("a FIFO", func(file string) error { return syscall.Mkfifo(file, 0o600) }),
		instead("a socket", func(file string) error {
			dir, err := os.Open(filepath.Dir(file)) // an address is not as long as a path may be
			if err != nil {
				return err
			}
			defer dir.Close()
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(file))})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return l.Close()
		}),
		instead("a link to nothing", func(file string) error { return os.Symlink("/nowhere", file) }),
		instead("a link to itself", func(file string) error { return os.Symlink(filepath.Base(file), file) }),
		instead("a link to the bystander's record", func(file string) error {
			return os.Symlink("../cid-bystander/net1.json", file)
		}),
		instead("a device node", func(file string) error { return syscall.Mknod(file, syscall.S_IFCHR|0o600, 1<<8|5) }), // /dev/zero
	}
}

// readables are records of other versions, which are acted on as if they were ours.
func readables() []spoiling {
	change := func(name string, do func(map[string]any)) spoiling {
		return spoiling{name: name, good: true, do: func(t testing.TB, file string, text []byte) {
			t.Helper()
			var rec map[string]any
			must(t, json.Unmarshal(text, &rec))
			do(rec)
			text, err := json.Marshal(rec)
			must(t, err)
			must(t, os.WriteFile(file, text, 0o600))
		}}
	}
	return []spoiling{change("the first version", older), change("a version to come that we may read", newer(record.Version))}
}
