// SPDX-License-Identifier: Apache-2.0

//go:build lab

package crowd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans"
)

// registry is what the runtime and kubelet know: the attachments that the one lists for GC, and the devices that the other has set
// aside for pods.
type registry struct {
	mu       sync.Mutex
	valid    map[string]bool
	promised map[string]bool
	// Of podfabricctl repair: a run that begins after a device was set aside sees it.
	runs, ended int
	again       *sync.Cond
}

func newRegistry() *registry {
	r := &registry{valid: map[string]bool{}, promised: map[string]bool{}}
	r.again = sync.NewCond(&r.mu)
	return r
}

// list adds an attachment to what GC is told is alive, unlist removes it.
func (r *registry) list(id string)   { r.mu.Lock(); r.valid[id] = true; r.mu.Unlock() }
func (r *registry) unlist(id string) { r.mu.Lock(); delete(r.valid, id); r.mu.Unlock() }

// checkpoint is where kubelet writes down which devices it gave to pods.
const checkpoint = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"

// promise sets a device aside, as kubelet does before the runtime is told of the pod, and gives the number of its verbs device, which
// is the device node that the container will have. A repair that began before cannot know, and may still change it.
func (r *registry) promise(t *testing.T, vf string) int {
	t.Helper()
	r.mu.Lock()
	r.promised[vf] = true
	r.write(t)
	for begun := r.runs; r.ended < begun; {
		r.again.Wait()
	}
	r.mu.Unlock()
	await(t, "the verbs device of "+vf, func() bool { return uverbs(t, vf) >= 0 })
	return uverbs(t, vf)
}

func (r *registry) forget(t *testing.T, vf string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.promised, vf)
	r.write(t)
}

func (r *registry) write(t *testing.T) {
	t.Helper()
	ids := []string{}
	for vf := range r.promised {
		ids = append(ids, vf)
	}
	text, err := json.Marshal(map[string]any{"Data": map[string]any{
		"PodDeviceEntries": []any{map[string]any{"DeviceIDs": map[string]any{"-1": ids}}}, "RegisteredDevices": map[string]any{},
	}})
	err = errors.Join(err, os.MkdirAll(filepath.Dir(checkpoint), 0o755), os.WriteFile(checkpoint+".new", text, 0o600), os.Rename(checkpoint+".new", checkpoint))
	if err != nil {
		t.Errorf("write kubelet's checkpoint: %v", err)
	}
}

// gc calls GC with what the runtime lists now, which may be old news by the time that it is read.
func (r *registry) gc(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	list := []string{}
	for id := range r.valid {
		list = append(list, fmt.Sprintf(`{"containerID":%q,"ifname":"net1"}`, id))
	}
	r.mu.Unlock()
	slices.Sort(list)
	call{conf: fmt.Sprintf(`{"cniVersion":"1.1.0","name":"crowd","type":"podfabric","cni.dev/valid-attachments":[%s]}`, strings.Join(list, ","))}.ok(t, "GC")
}

// finding is one of podfabricctl repair.
type finding struct{ Kind, Object, Why, Action, Outcome, Detail string }

// repair runs podfabricctl repair and gives what it found. Nothing of it may have failed.
func (r *registry) repair(t *testing.T) []finding {
	t.Helper()
	r.mu.Lock()
	r.runs++
	r.mu.Unlock()
	cmd := exec.Command("podfabricctl", "repair", "--json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	r.mu.Lock()
	r.ended++
	r.again.Broadcast()
	r.mu.Unlock()
	var found []finding
	if jsonErr := json.Unmarshal(out, &found); jsonErr != nil {
		t.Errorf("podfabricctl repair: %v: %s\n%s", err, out, stderr.String())
	}
	for _, f := range found {
		if f.Outcome == "failed" {
			t.Errorf("podfabricctl repair: %+v\n%s", f, stderr.String())
		}
	}
	return found
}

// meanwhile does something again and again until the returned function is called, which tells how often.
func meanwhile(do func()) func() int {
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
				do()
			}
		}
	}()
	return sync.OnceValue(func() int { close(stop); return <-done })
}

// uverbs is the number of a function's verbs device as the kernel has it; -1: none.
func uverbs(t *testing.T, pci string) int {
	t.Helper()
	entries, _ := os.ReadDir(filepath.Join("/sys/bus/pci/devices", pci, "infiniband_verbs"))
	n := -1
	for _, e := range entries {
		if _, err := fmt.Sscanf(e.Name(), "uverbs%d", &n); err != nil {
			t.Errorf("verbs device of %s: %q: %v", pci, e.Name(), err)
		}
	}
	return n
}

// rdma are the RDMA devices of a pod.
func (p pod) rdma(t *testing.T) []string {
	t.Helper()
	ns, err := rdmans.OpenNS(p.Path)
	if err != nil {
		t.Errorf("look into pod %s: %v", p.Name, err)
		return nil
	}
	defer ns.Close()
	devs, err := rdmans.In(ns).Devices()
	if err != nil {
		t.Errorf("look into pod %s: %v", p.Name, err)
	}
	var names []string
	for _, d := range devs {
		names = append(names, d.Name)
	}
	return names
}

// holds wants the pod to have a VF with its RDMA device and no other, and its verbs device the number that was promised: by the
// kernel, the hint, and the record.
func (p pod) holds(t *testing.T, c call, vf, ibdev string, number int) {
	t.Helper()
	if names := p.rdma(t); !slices.Equal(names, []string{ibdev}) {
		t.Errorf("pod %s has the RDMA devices %v, wanted %s of %s", p.Name, names, ibdev, vf)
	}
	if now := uverbs(t, vf); now != number {
		t.Errorf("pod %s: %s has uverbs%d, and was promised as uverbs%d", p.Name, vf, now, number)
	}
	if netdev := node.Netdev(vf); netdev != "" {
		t.Errorf("pod %s: the node still has %s of %s", p.Name, netdev, vf)
	}
	var doc hint.Document
	if err := readJSON(filepath.Join(c.hint(), "fabric.json"), &doc); err != nil {
		t.Errorf("pod %s: %v", p.Name, err)
	} else if n := doc.Rails[0].RDMA.Uverbs; n == nil || *n != number || doc.Rails[0].RDMA.Device != ibdev {
		t.Errorf("pod %s: the hint tells of %+v, wanted %s as uverbs%d", p.Name, doc.Rails[0].RDMA, ibdev, number)
	}
	var rec record.Record
	if err := readJSON(filepath.Join(cni.StateDir, "attachments", c.id, "net1.json"), &rec); err != nil {
		t.Errorf("pod %s: %v", p.Name, err)
	} else if rec.Before.RDMA == nil || rec.Before.RDMA.Uverbs != number || rec.Device.String() != vf {
		t.Errorf("pod %s: the record tells of %s, %+v, wanted %s as uverbs%d", p.Name, rec.Device, rec.Before.RDMA, vf, number)
	}
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}
