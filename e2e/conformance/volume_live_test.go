// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/hint/outsidetest"
)

// volume is a pod's emptyDir on this machine.
type volume struct {
	pod    pod
	call   call
	dir    string
	beside *outsidetest.Tree // on the same file system
}

// newVolume makes a kubelet with one pod.
func newVolume(t *testing.T, more object) *volume {
	t.Helper()
	must(t, os.MkdirAll("/etc/podfabric", 0o755))
	must(t, os.WriteFile("/etc/podfabric/node.json", []byte(`{"kubeletRoot":"/run/kubelet"}`), 0o644))
	dir := "/run/kubelet/pods/" + podUID + "/volumes/kubernetes.io~empty-dir/podfabric"
	must(t, os.MkdirAll(dir, 0o777))
	t.Cleanup(func() {
		must(t, os.RemoveAll("/etc/podfabric"))
		must(t, os.RemoveAll("/run/kubelet"))
		must(t, os.RemoveAll("/run/outside"))
	})
	p := newPod(t, "volume")
	network := with(network(versions()[4]), object{"mac": nil, "hint": with(object{"volume": "podfabric"}, more)})
	return &volume{p, call{
		network: network, id: "volume", netns: p.path,
		args: [][2]string{{"K8S_POD_UID", podUID}, {"K8S_POD_NAMESPACE", "team-a"}, {"K8S_POD_NAME", "pod-0"}},
	}, dir, outsidetest.New(t, "/run")}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file gives a path in the volume.
func (v *volume) file(name string) string { return filepath.Join(v.dir, name) }

// mount mounts something, until the test ends.
func (v *volume) mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	must(t, unix.Mount(source, target, kind, flags, data))
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

// TestHostileVolumeLive has the built plugin meet what a pod planted in its volume. plugin/hint tries more; here are the ways in which
// a process of its own could fare otherwise.
func TestHostileVolumeLive(t *testing.T) {
	for name, test := range map[string]struct {
		plant   func(t *testing.T, v *volume)
		arrives bool
		linked  []string
	}{
		"link to a file": {func(t *testing.T, v *volume) {
			t.Helper()
			must(t, os.Symlink(v.beside.File("file"), v.file("nccl.conf")))
		}, true, nil},
		"link to a folder": {func(t *testing.T, v *volume) {
			t.Helper()
			must(t, os.Symlink(v.beside.File("folder"), v.file("nccl.conf")))
		}, true, nil},
		"link by a process": {func(t *testing.T, v *volume) {
			t.Helper()
			must(t, os.Symlink("/proc/self/root/run/outside/file", v.file(".podfabric-nccl.conf")))
		}, true, nil},
		"hard link": {func(t *testing.T, v *volume) {
			t.Helper()
			must(t, os.Link(v.beside.File("secret"), v.file("fabric.json")))
		}, true, []string{"secret"}},
		"hard link to a tmp": {func(t *testing.T, v *volume) {
			t.Helper()
			must(t, os.Link(v.beside.File("program"), v.file(".podfabric-fabric.json")))
		}, true, []string{"program"}},
		"fifo": {func(t *testing.T, v *volume) { t.Helper(); must(t, unix.Mkfifo(v.file("nccl.conf"), 0o666)) }, true, nil},
		"device": {func(t *testing.T, v *volume) {
			t.Helper()
			must(t, unix.Mknod(v.file("nccl.conf"), unix.S_IFCHR|0o666, int(unix.Mkdev(5, 1))))
		}, true, nil},
		"folder": {func(t *testing.T, v *volume) { t.Helper(); must(t, os.MkdirAll(v.file("nccl.conf/a"), 0o777)) }, false, nil},
		"a file of the node mounted in it": {func(t *testing.T, v *volume) {
			t.Helper()
			must(t, os.WriteFile(v.file("nccl.conf"), nil, 0o644))
			v.mount(t, v.beside.File("file"), v.file("nccl.conf"), "", unix.MS_BIND, "")
		}, false, nil},
		"a folder of the node mounted in it": {func(t *testing.T, v *volume) {
			t.Helper()
			must(t, os.Mkdir(v.file(".podfabric-nccl.conf"), 0o755))
			v.mount(t, v.beside.File("folder"), v.file(".podfabric-nccl.conf"), "", unix.MS_BIND, "")
		}, false, nil},
		"read-only": {func(t *testing.T, v *volume) {
			t.Helper()
			v.mount(t, v.dir, v.dir, "", unix.MS_BIND, "")
			must(t, unix.Mount("", v.dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
		}, false, nil},
		"full":                {func(t *testing.T, v *volume) { t.Helper(); v.mount(t, "tmpfs", v.dir, "tmpfs", 0, "nr_inodes=1") }, false, nil},
		"another file system": {func(t *testing.T, v *volume) { t.Helper(); v.mount(t, "tmpfs", v.dir, "tmpfs", 0, "size=1m") }, true, nil},
		"one that does not answer": {func(t *testing.T, v *volume) {
			t.Helper()
			fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
			must(t, err)
			v.mount(t, "silent", v.dir, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0", fd))
			t.Cleanup(func() { _ = unix.Close(fd) })
		}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, require := range []bool{false, true} {
				t.Run(fmt.Sprintf("required %t", require), func(t *testing.T) {
					v := newVolume(t, object{"require": require})
					before := look(t, v.pod)
					test.plant(t, v)
					v.beside.Look(t)
					v.meets(t, test.arrives, require)
					before.unchanged(t, v.pod)
					v.beside.Unchanged(t, test.linked...)
				})
			}
		})
	}
}

// meets calls ADD and DEL.
func (v *volume) meets(t *testing.T, arrives, require bool) {
	t.Helper()
	begun := time.Now()
	failed := v.call.bare(t, "ADD").failure(t)
	switch {
	case require && !arrives:
		judge(t, "ADD", failed, 108, []string{"hint.require"})
	case failed != nil:
		t.Errorf("ADD: %+v", failed)
	case arrives:
		for _, file := range []string{"nccl.conf", "fabric.json"} {
			if info, err := os.Lstat(v.file(file)); err != nil || info.Mode() != 0o644 {
				t.Errorf("%s: %v, %v", file, info, err)
			}
		}
	}
	if failed = v.call.bare(t, "DEL").failure(t); failed != nil {
		t.Errorf("DEL: %+v", failed)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestHostileVolumeRaceLive exchanges files and links that lead out while the built plugin comes and goes.
func TestHostileVolumeRaceLive(t *testing.T) {
	v := newVolume(t, nil)
	before := look(t, v.pod)
	v.beside.Look(t)
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		for swaps := 0; ; swaps++ {
			for i, name := range []string{"nccl.conf", ".podfabric-nccl.conf", "fabric.json", ".podfabric-fabric.json"} {
				_ = os.Symlink([]string{v.beside.File("file"), v.beside.File("folder")}[(i+swaps)%2], v.file("evil"))
				if unix.Renameat2(unix.AT_FDCWD, v.file("evil"), unix.AT_FDCWD, v.file(name), unix.RENAME_EXCHANGE) != nil {
					_ = os.Rename(v.file("evil"), v.file(name))
				}
				_ = os.RemoveAll(v.file("evil"))
			}
			select {
			case <-stop:
				done <- swaps
				return
			default:
			}
		}
	}()
	rounds := 0
	for end := time.Now().Add(5 * time.Second); rounds < 3 || time.Now().Before(end); rounds++ {
		for _, verb := range []string{"ADD", "DEL"} {
			if failed := v.call.bare(t, verb).failure(t); failed != nil {
				t.Errorf("%s: %+v", verb, failed)
			}
		}
	}
	close(stop)
	t.Logf("%d rounds, %d exchanges", rounds, 4*<-done)
	before.unchanged(t, v.pod)
	v.beside.Unchanged(t)
}

// TestModes: whatever the umask, what the plugin makes has the modes of design §6, and is root's.
func TestModes(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o077, 0o777} {
		t.Run(fmt.Sprintf("umask %03o", mask), func(t *testing.T) {
			must(t, os.RemoveAll("/run/podfabric"))
			v := newVolume(t, nil)
			must(t, os.WriteFile("/etc/podfabric/node.json", []byte(`{"kubeletRoot":"/run/kubelet","log":{"file":"/run/podfabric.log"}}`), 0o644))
			t.Cleanup(func() { must(t, os.Remove("/run/podfabric.log")) })
			v.call.network = leased(object{"hint": object{"volume": "podfabric"}})
			umask := unix.Umask(mask)
			failed := v.call.bare(t, "ADD").failure(t)
			unix.Umask(umask)
			if failed != nil {
				t.Fatalf("ADD: %+v", failed)
			}
			uidDir := "/run/podfabric/pods/" + podUID
			public := map[string]os.FileMode{
				"/run/podfabric": 0o755 | os.ModeDir, "/run/podfabric/pods": 0o755 | os.ModeDir, uidDir: 0o755 | os.ModeDir,
				uidDir + "/fabric.json": 0o644, uidDir + "/nccl.conf": 0o644, v.file("fabric.json"): 0o644, v.file("nccl.conf"): 0o644,
			}
			seen := 0
			for _, root := range []string{"/run/podfabric", "/run/podfabric.log", v.dir} {
				must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
					must(t, err)
					var st unix.Stat_t
					must(t, unix.Lstat(path, &st))
					info, err := os.Lstat(path)
					must(t, err)
					want, known := public[path]
					switch {
					case path == v.dir, info.Mode().Type() == os.ModeSymlink:
						return nil
					case !known && info.IsDir():
						want = 0o700 | os.ModeDir
					case !known:
						want = 0o600
					}
					if info.Mode() != want || st.Uid != 0 || st.Gid != 0 {
						t.Errorf("%s is %v of %d:%d, want %v of root", path, info.Mode(), st.Uid, st.Gid, want)
					}
					seen++
					return nil
				}))
			}
			if seen < 12 {
				t.Errorf("only %d files were looked at", seen)
			}
			if failed := v.call.bare(t, "DEL").failure(t); failed != nil {
				t.Errorf("DEL: %+v", failed)
			}
			if left, err := os.ReadDir(v.dir); err != nil || len(left) > 0 {
				t.Errorf("left in the volume: %v, %v", left, err)
			}
			if strings.Contains(fmt.Sprint(files(t)), podUID) {
				t.Errorf("left: %v", files(t))
			}
		})
	}
}
