// SPDX-License-Identifier: Apache-2.0

//go:build lab

package crowd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// short is a deadline that those who wait for a stuck one reach, and nobody else.
const short = 15 * time.Second

// TestHungDelegate has the IPAM plugin of a pod hang, and the plugin itself stop while it waits for that. It holds no lock then:
// pods on other devices come and go, one that wants the same device is told at once who has it, and DEL ends it.
func TestHungDelegate(t *testing.T) {
	deadline(t, patient)
	before := cni.Look(t)
	functions := vfs(t)
	must(t, os.MkdirAll("/var/lib/fakeipam", 0o755))
	const hang, lease = "/var/lib/fakeipam/hang", "/var/lib/fakeipam/hung-net1"
	must(t, os.WriteFile(hang, nil, 0o600))
	t.Cleanup(func() { _ = os.Remove(hang) })
	p := newPod(t, "hung")
	c := call{conf: ofVF(functions[0], delegated), id: "hung", netns: p.Path}
	add := c.start(t, "ADD")
	await(t, "the delegate to hang", func() bool { _, err := os.Stat(lease); return err == nil })
	if held, err := os.ReadDir(filepath.Join(cni.StateDir, "locks")); err != nil || len(held) > 0 {
		t.Errorf("locks while a delegate works: %v, %v", held, err)
	}
	for _, stopped := range []bool{false, true} {
		if stopped {
			add.stop(t)
		}
		var others sync.WaitGroup
		others.Go(func() { comeAndGo(t, "beside-vf", ofVF(functions[1], ranged)) })
		others.Go(func() { comeAndGo(t, "beside-macvlan", onPF(t, ranged)) })
		others.Go(func() {
			q := newPod(t, "thief")
			thief := call{conf: ofVF(functions[0], ranged), id: "thief", netns: q.Path}
			thief.refused(t, "ADD", "tests/hung", functions[0])
			thief.ok(t, "DEL")
			q.end(t)
		})
		others.Wait()
	}
	c.ok(t, "DEL")
	must(t, os.Remove(hang))
	add.resume(t)
	add.is(t, add.wait(t), 11, "the runtime deleted this attachment while it was being made")
	c.ok(t, "DEL")
	p.end(t)
	before.Unchanged(t)
	nothingLeft(t)
}

// comeAndGo is the life of a pod that nobody is in the way of.
func comeAndGo(t *testing.T, id, conf string) {
	t.Helper()
	p := newPod(t, id)
	c := call{conf: conf, id: id, netns: p.Path}
	c.ok(t, "ADD")
	c.ok(t, "DEL")
	p.end(t)
}

// TestStoppedInCommonLocks stops processes while they hold the locks that are everybody's: that of RDMA moves and that of the lease
// pool, which are held for a few requests and files. Those who need them wait until their deadline, answer with code 11 and the
// holder's name, and take back what they did; all others go on. When the holders go on, all is well.
func TestStoppedInCommonLocks(t *testing.T) {
	before := cni.Look(t)
	functions := vfs(t)
	deadline(t, patient)
	attached, p, q := newPod(t, "attached"), newPod(t, "stopped"), newPod(t, "pooled")
	leaves := call{conf: ofVF(functions[3], delegated), id: attached.Name, netns: attached.Path}
	leaves.ok(t, "ADD")
	pooled := call{conf: onPF(t, ranged), id: q.Name, netns: q.Path}
	leasing := pooled.stopIn(t, "pool")
	c := call{conf: ofVF(functions[0], delegated), id: p.Name, netns: p.Path}
	moving := c.stopIn(t, "rdma-move")

	deadline(t, short)
	holder := fmt.Sprintf("ADD stopped/net1, pid %d", moving.cmd.Process.Pid)
	owner := fmt.Sprintf("an allocation of addresses for pooled/net1, pid %d", leasing.cmd.Process.Pid)
	quick := func(conf string) string { return strings.Replace(conf, `"wait":"2m"`, `"wait":"10s"`, 1) }
	var others sync.WaitGroup
	wait := func(id, conf, vf string, texts ...string) {
		others.Go(func() {
			own := newPod(t, id)
			waits := call{conf: conf, id: own.Name, netns: own.Path}
			netdev, ibdev := node.Netdev(vf), node.IBDev(vf)
			waits.refused(t, "ADD", texts...)
			if n, d := node.Netdev(vf), node.IBDev(vf); vf != functions[0] && (n != netdev || d != ibdev) {
				t.Errorf("after ADD was refused %s has %q and %q at home, wanted %q and %q", vf, n, d, netdev, ibdev)
			}
			waits.ok(t, "DEL")
			own.end(t)
		})
	}
	wait("moves-1", quick(ofVF(functions[1], delegated)), functions[1], "rdma-move", holder)
	wait("moves-2", quick(ofVF(functions[2], delegated)), functions[2], "rdma-move", holder)
	wait("thief", quick(ofVF(functions[0], delegated)), functions[0], "device "+functions[0], holder)
	wait("leases", quick(ofVF(functions[4], ranged)), functions[4], "pool", owner)
	others.Go(func() { leaves.refused(t, "DEL", "rdma-move", holder) })
	others.Go(func() { c.refused(t, "DEL", "attachment stopped/net1", holder) })
	others.Go(func() { comeAndGo(t, "beside-macvlan", onPF(t, delegated)) })
	others.Go(func() {
		comeAndGo(t, "beside-vf", strings.Replace(ofVF(functions[5], delegated), `{"require":"gid","wait":"2m"}`, `{"mode":"off"}`, 1))
	})
	others.Wait()

	deadline(t, patient)
	for _, stopped := range []*process{moving, leasing} {
		stopped.resume(t)
		if f := stopped.wait(t); f != nil {
			t.Errorf("%s, which was stopped: code %d: %s\n%s", stopped.what, f.Code, f.Text(), stopped.stderr.Bytes())
		}
	}
	comeAndGo(t, "afterwards", ofVF(functions[1], ranged))
	for _, d := range []call{c, pooled, leaves} {
		d.ok(t, "DEL")
	}
	for _, p := range []pod{p, q, attached} {
		p.end(t)
	}
	before.Unchanged(t)
	nothingLeft(t)
}

// TestStoppedInOtherLocks stops a process while it holds a lock that is not everybody's: others do not notice.
func TestStoppedInOtherLocks(t *testing.T) {
	before := cni.Look(t)
	functions := vfs(t)
	for name, lock := range map[string]string{"hint": "hint-holder", "device": "device%20" + functions[0]} {
		t.Run(name, func(t *testing.T) {
			deadline(t, patient)
			p := newPod(t, "holder")
			c := call{conf: ofVF(functions[0], ranged), id: p.Name, netns: p.Path}
			add := c.stopIn(t, lock)
			var others sync.WaitGroup
			for i, ipam := range []string{ranged, delegated} {
				others.Go(func() { comeAndGo(t, fmt.Sprint("beside-vf-", i), ofVF(functions[1+i], ipam)) })
				others.Go(func() { comeAndGo(t, fmt.Sprint("beside-macvlan-", i), onPF(t, ipam)) })
			}
			others.Wait()
			add.resume(t)
			if f := add.wait(t); f != nil {
				t.Errorf("ADD that was stopped: code %d: %s\n%s", f.Code, f.Text(), add.stderr.Bytes())
			}
			c.ok(t, "DEL")
			p.end(t)
		})
	}
	before.Unchanged(t)
	nothingLeft(t)
}

// TestKilledInAMove kills a process while it holds the lock of RDMA moves and another waits for it: that one goes on.
func TestKilledInAMove(t *testing.T) {
	deadline(t, patient)
	before := cni.Look(t)
	functions := vfs(t)
	p, q := newPod(t, "killed"), newPod(t, "next")
	c, d := call{conf: ofVF(functions[0], ranged), id: p.Name, netns: p.Path}, call{conf: ofVF(functions[1], ranged), id: q.Name, netns: q.Path}
	add := c.stopIn(t, "rdma-move")
	next := d.start(t, "ADD")
	// Its netdev is in the pod, so that the RDMA device is what comes now.
	await(t, "another at the lock", func() bool { return node.Netdev(functions[1]) == "" })
	must(t, add.cmd.Process.Kill())
	_ = add.cmd.Wait() // says "killed"
	if f := next.wait(t); f != nil {
		t.Errorf("ADD after the holder was killed: code %d: %s\n%s", f.Code, f.Text(), next.stderr.Bytes())
	}
	d.ok(t, "CHECK")
	for _, c := range []call{c, d} {
		c.ok(t, "DEL")
	}
	p.end(t)
	q.end(t)
	before.Unchanged(t)
	nothingLeft(t)
}

// stopIn begins ADD and stops it while it holds the lock of that file. What it misses it tries again.
func (c call) stopIn(t *testing.T, lock string) *process {
	t.Helper()
	file := filepath.Join(cni.StateDir, "locks", lock)
	for range 50 {
		add := c.start(t, "ADD")
		for seen := false; !seen; runtime.Gosched() {
			text, _ := os.ReadFile(file)
			seen = strings.Contains(string(text), fmt.Sprintf("pid %d", add.cmd.Process.Pid)) || add.gone()
		}
		add.stop(t)
		if !add.gone() && holds(t, file) {
			return add
		}
		add.resume(t)
		if f := add.wait(t); f != nil {
			t.Fatalf("%s, which was stopped too late: code %d: %s", add.what, f.Code, f.Text())
		}
		c.ok(t, "DEL")
	}
	t.Fatalf("in 50 tries no ADD was stopped while it held %s", lock)
	return nil
}

// holds tells whether somebody has the lock of a file.
func holds(t *testing.T, file string) bool {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// stop stops every thread of the process, if it has not ended.
func (p *process) stop(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	await(t, p.what+" stopped", func() bool {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		must(t, err)
		for _, stat := range stats {
			text, _ := os.ReadFile(stat)
			if _, after, _ := strings.Cut(string(text), ") "); after != "" && !strings.ContainsAny(after[:1], "TZX") {
				return false
			}
		}
		return true
	})
}

func (p *process) resume(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGCONT))
}

// gone tells whether the process has ended and waits to be waited for.
func (p *process) gone() bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, after, _ := strings.Cut(string(text), ") ")
	return after == "" || strings.HasPrefix(after, "Z")
}
