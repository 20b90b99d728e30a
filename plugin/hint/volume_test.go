// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/hint"
)

// canary is a file outside the volume that nothing may read into the hint, write, replace or remove.
type canary struct {
	path string
	info os.FileInfo
}

const canaryText = "NCCL_NET_PLUGIN=/canary.so\n"

func newCanary(t *testing.T, dir string) canary {
	t.Helper()
	c := canary{path: filepath.Join(dir, "canary")}
	if err := os.WriteFile(c.path, []byte(canaryText), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if c.info, err = os.Lstat(c.path); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c canary) check(t *testing.T) {
	t.Helper()
	info, err := os.Lstat(c.path)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(info, c.info) || info.Mode() != c.info.Mode() || info.ModTime() != c.info.ModTime() {
		t.Errorf("the canary was touched: %v, was %v", info, c.info)
	}
	if diff := cmp.Diff(canaryText, string(read(t, c.path))); diff != "" {
		t.Errorf("the canary was written (-want +got):\n%s", diff)
	}
}

// A pod can put anything into its own volume. ADD goes on, nothing outside is touched, and nothing blocks.
func TestHostileVolume(t *testing.T) {
	t.Parallel()
	const temp = ".podfabric-nccl.conf"
	tests := []struct {
		name    string
		plant   func(t *testing.T, volume, canary string)
		arrives bool // nccl.conf is a plain file of ours afterwards
	}{
		{"symbolic link to a file", func(t *testing.T, v, c string) { t.Helper(); link(t, c, v, "nccl.conf") }, true},
		{"dangling link", func(t *testing.T, v, c string) { t.Helper(); link(t, c+"-new", v, "nccl.conf") }, true},
		{"relative link out", func(t *testing.T, v, _ string) { t.Helper(); link(t, "../../../../../../canary", v, "nccl.conf") }, true},
		{"hard link", func(t *testing.T, v, c string) { t.Helper(); must(t, os.Link(c, filepath.Join(v, "nccl.conf"))) }, true},
		{"fifo", func(t *testing.T, v, _ string) {
			t.Helper()
			must(t, syscall.Mkfifo(filepath.Join(v, "nccl.conf"), 0o666))
		}, true},
		{"read-only file", func(t *testing.T, v, _ string) {
			t.Helper()
			must(t, os.WriteFile(filepath.Join(v, "nccl.conf"), []byte("NCCL_IB_HCA=evil\n"), 0o400))
		}, true},
		{"folder", func(t *testing.T, v, _ string) {
			t.Helper()
			must(t, os.MkdirAll(filepath.Join(v, "nccl.conf", "x"), 0o700))
		}, false},
		{"link where the temporary file goes", func(t *testing.T, v, c string) { t.Helper(); link(t, c, v, temp) }, true},
		{"hard link there", func(t *testing.T, v, c string) { t.Helper(); must(t, os.Link(c, filepath.Join(v, temp))) }, true},
		{"fifo there", func(t *testing.T, v, _ string) { t.Helper(); must(t, syscall.Mkfifo(filepath.Join(v, temp), 0o666)) }, true},
		{"full folder there", func(t *testing.T, v, _ string) { t.Helper(); must(t, os.MkdirAll(filepath.Join(v, temp, "x"), 0o700)) }, false},
		{"link to a folder outside", func(t *testing.T, v, c string) { t.Helper(); link(t, filepath.Dir(c), v, "nccl.conf") }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "podfabric")
			c := newCanary(t, filepath.Dir(n.store.Root))
			other := filepath.Join(n.volume, "mine.txt")
			must(t, os.WriteFile(other, []byte("the pod's"), 0o640))
			tt.plant(t, n.volume, c.path)
			warnings := n.put(t, attachment(1, "10.1.0.5/24"))
			if (len(warnings) == 0) != tt.arrives {
				t.Errorf("warnings: %q", warnings)
			}
			c.check(t)
			if got := string(read(t, other)); got != "the pod's" {
				t.Errorf("the pod's own file now holds %q", got)
			}
			info, err := os.Lstat(filepath.Join(n.volume, "nccl.conf"))
			if tt.arrives {
				if err != nil || !info.Mode().IsRegular() || info.Mode() != 0o644 {
					t.Fatalf("nccl.conf: %v, %v", info, err)
				}
				if diff := cmp.Diff(string(n.host(t, "nccl.conf")), n.pod(t, "nccl.conf")); diff != "" {
					t.Errorf("(-host +pod):\n%s", diff)
				}
			}
			if !strings.Contains(n.pod(t, "fabric.json"), "mlx5_1") {
				t.Error("the other file did not arrive")
			}
			n.drop(t, attachment(1))
			c.check(t)

			strict := attachment(1, "10.1.0.5/24")
			strict.Settings.Require = true
			_, err = n.store.Put(t.Context(), uid, strict)
			if (err == nil) != tt.arrives {
				t.Errorf("with hint.require: %v", err)
			}
			undelivered(t, err, tt.arrives)
		})
	}
}

func link(t *testing.T, to, volume, name string) {
	t.Helper()
	must(t, os.Symlink(to, filepath.Join(volume, name)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// undelivered checks the refusal that hint.require makes of a hint that did not arrive.
func undelivered(t *testing.T, err error, fine bool) {
	t.Helper()
	if fine {
		return
	}
	var problem *netconf.Problem
	if !errors.Is(err, hint.ErrUndelivered) || !errors.As(err, &problem) || problem.Code != netconf.CodeHint {
		t.Fatalf("got %v, want a problem of code %d that wraps ErrUndelivered", err, netconf.CodeHint)
	}
	if strings.Contains(err.Error(), syscall.ENOENT.Error()) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the text would be misread: %q", err)
	}
}

// The way to the volume is kubelet's. Where it is not as kubelet makes it, nothing is written.
func TestVolumeThatIsNone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		make  func(t *testing.T, n *node)
		quiet bool // no warning: most pods have no such volume
	}{
		{"no such volume", func(*testing.T, *node) {}, true},
		{"no kubelet", func(_ *testing.T, n *node) { n.store.KubeletRoot = "" }, true},
		{"kubelet's folder is not there", func(_ *testing.T, n *node) { n.store.KubeletRoot += "-gone" }, true},
		{"a file", func(t *testing.T, n *node) { t.Helper(); must(t, os.WriteFile(n.volume, nil, 0o600)) }, false},
		{"a link to another pod's volume", func(t *testing.T, n *node) {
			t.Helper()
			other := n.volume + "-other"
			must(t, os.Mkdir(other, 0o700))
			must(t, os.Symlink(other, n.volume))
		}, false},
		{"a link within the kubelet's folder", func(t *testing.T, n *node) {
			t.Helper()
			must(t, os.Mkdir(n.volume+"-other", 0o700))
			must(t, os.Symlink("podfabric-other", n.volume))
		}, false},
		{"a fifo", func(t *testing.T, n *node) { t.Helper(); must(t, syscall.Mkfifo(n.volume, 0o600)) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "podfabric")
			must(t, os.Remove(n.volume))
			tt.make(t, &n)
			if warnings := n.put(t, attachment(1, "10.1.0.5/24")); (len(warnings) == 0) != tt.quiet {
				t.Errorf("warnings: %q", warnings)
			}
			if entries, err := os.ReadDir(n.volume + "-other"); !errors.Is(err, fs.ErrNotExist) && len(entries) > 0 {
				t.Errorf("written through the link: %v", entries)
			}
			strict := attachment(1, "10.1.0.5/24")
			strict.Settings.Require = true
			_, err := n.store.Put(t.Context(), uid, strict)
			undelivered(t, err, false)
		})
	}
}

// hint.require without any way into the pod is refused with the same words.
func TestRequireWithoutUID(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	f := attachment(1, "10.1.0.5/24")
	f.Pod.UID, f.Settings.Require = "", true
	_, err := n.store.Put(t.Context(), "", f)
	undelivered(t, err, false)
	f.Settings.Volume = ""
	_, err = n.store.Put(t.Context(), "", f)
	undelivered(t, err, false)
	for _, volume := range []string{"..", "a/b", "../.."} {
		f := attachment(1, "10.1.0.5/24")
		f.Settings.Require, f.Settings.Volume = true, volume
		_, err = n.store.Put(t.Context(), uid, f)
		if !errors.Is(err, hint.ErrName) {
			t.Errorf("volume %q: %v", volume, err)
		}
	}
}

// A pod that swaps its files as fast as it can, while ADD writes, gains nothing.
func TestVolumeThatChanges(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	c := newCanary(t, filepath.Dir(n.store.Root))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, name := range []string{"nccl.conf", ".podfabric-nccl.conf", "fabric.json", ".podfabric-fabric.json"} {
				path := filepath.Join(n.volume, name)
				_ = os.RemoveAll(path)
				_ = os.Symlink(c.path, path)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		n.put(t, attachment(1, "10.1.0.5/24"))
	}
	close(stop)
	<-done
	c.check(t)
}
