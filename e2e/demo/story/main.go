// SPDX-License-Identifier: Apache-2.0

// Command story is the demo: it plays the container runtime for three pods on the emulated node, shows what podfabric is asked
// and answers, sends real bytes by the hint that a pod gets, and ends by comparing every device with the start.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/podfabric/podfabric/plugin/hint"
)

func main() {
	if err := tell(); err != nil {
		fmt.Println("\nThe demo failed:", err)
		os.Exit(1)
	}
}

// tell is the story from beginning to end.
func tell() error {
	heading("A node with two RDMA NICs (emulated), two virtual functions each, RDMA namespaces exclusive.\n" +
		"   The first function of each has no RDMA device of its own: soft RoCE, which can carry bytes, will take its place")
	if err := writeNode(); err != nil {
		return err
	}
	if err := show("podfabricctl", "show"); err != nil {
		return err
	}
	start := filepath.Join(os.TempDir(), "start.json")
	if err := quiet("devices", "save", start); err != nil {
		return err
	}

	a := &pod{name: "trainer-0", uid: "aaaaaaaa-0000-4000-8000-000000000001", pci: "0000:01:10.0", address: "10.9.0.1/24", soft: true}
	b := &pod{name: "trainer-1", uid: "bbbbbbbb-0000-4000-8000-000000000002", pci: "0000:02:10.0", address: "10.9.0.2/24", soft: true}
	c := &pod{name: "trainer-2", uid: "cccccccc-0000-4000-8000-000000000003", pci: "0000:01:10.2", address: "10.9.0.3/24"}
	for _, p := range []*pod{a, b} {
		heading("Pod %s gets the VF %s, an address, and soft RoCE on it", p.name, p.pci)
		if err := p.attach(); err != nil {
			return err
		}
	}
	if err := traffic(a, b); err != nil {
		return err
	}
	heading("Pod %s gets the VF %s with the RDMA device that belongs to it", c.name, c.pci)
	if err := c.attach(); err != nil {
		return err
	}
	if err := isolation(c); err != nil {
		return err
	}
	return home(start, a, b, c)
}

// writeNode gives the emulated machine the patience it needs; on real hardware the defaults do.
func writeNode() error {
	if err := os.MkdirAll("/etc/podfabric", 0o755); err != nil {
		return err
	}
	return os.WriteFile("/etc/podfabric/node.json", []byte(`{"version":1,"deadline":"60s"}`+"\n"), 0o600)
}

// traffic sends bytes between the pods with device and GID index out of their hint files, and shows that an index whose slot is
// empty does not work.
func traffic(a, b *pod) error {
	heading("Real bytes from %s to %s, with device and GID index from their hint files", a.name, b.name)
	if err := ready(a, b); err != nil {
		return err
	}
	fmt.Println("First with GID index 9, as if copied from somewhere. Its slot is empty:\n$ ib_write_bw -d", a.port.Device, "-x 9", b.ip())
	if out, err := bandwidth(a, b, 9, 9); err == nil {
		return fmt.Errorf("traffic with an empty GID slot succeeded:\n%s", out)
	}
	fmt.Println("  refused, as it must be")
	fmt.Printf("Now with the hints' own. Emulated, so the figure says that bytes flow, not how fast:\n$ ib_write_bw -d %s -x %d %s\n",
		a.port.Device, *a.port.GIDIndex, b.ip())
	out, err := bandwidth(a, b, *a.port.GIDIndex, *b.port.GIDIndex)
	if err != nil {
		return fmt.Errorf("traffic by the hint: %w", err)
	}
	for line := range strings.SplitSeq(out, "\n") {
		if strings.Contains(line, "#bytes") || strings.HasPrefix(strings.TrimSpace(line), "65536") {
			fmt.Println(line)
		}
	}
	return nil
}

// isolation shows that an exclusive device is in its pod and nowhere else.
func isolation(p *pod) error {
	heading("Exclusive: %s sees its RDMA device, the node and the other pods do not", p.name)
	for _, args := range [][]string{
		{"ip", "netns", "exec", p.name, "rdma", "dev"},
		{"ip", "netns", "exec", "trainer-0", "rdma", "dev"},
		{"rdma", "dev"},
		{"podfabricctl", "show"},
	} {
		if err := show(args[0], args[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// home deletes the pods in three ways and compares every device with the start.
func home(start string, a, b, c *pod) error {
	heading("The pods end: %s and %s by DEL, %s with its namespace dead before DEL came", a.name, b.name, c.name)
	for _, p := range []*pod{a, b} {
		if err := p.detach(); err != nil {
			return err
		}
		if err := quiet("ip", "netns", "del", p.name); err != nil {
			return err
		}
	}
	if err := show("ip", "netns", "del", c.name); err != nil {
		return err
	}
	if err := c.detach(); err != nil {
		return err
	}
	heading("Every link, address, RDMA device, number and file, compared with the start")
	return show("devices", "compare", start)
}

// pod is one pod with one attachment.
type pod struct {
	name, uid, pci, address string
	soft                    bool
	port                    hint.Port // filled by attach, from the file in the pod's own volume
}

// conf is the network as a NetworkAttachmentDefinition holds it, with the deviceID that Multus adds.
func (p *pod) conf() string {
	rdma := `{"wait": "30s"}`
	if p.soft {
		rdma = `{"wait": "30s", "softRoCE": true}`
	}
	return fmt.Sprintf(`{"cniVersion": "1.1.0", "name": "rail0", "type": "podfabric", "deviceID": %q, "rail": 0, "mtu": "pf",
 "rdma": %s,
 "ipam": {"type": "static", "addresses": [{"address": %q}]}}`, p.pci, rdma, p.address)
}

// ip is the pod's address without the prefix length.
func (p *pod) ip() string {
	ip, _, _ := strings.Cut(p.address, "/")
	return ip
}

func (p *pod) volume() string {
	return filepath.Join("/var/lib/kubelet/pods", p.uid, "volumes/kubernetes.io~empty-dir/podfabric")
}

// attach plays kubelet (it makes the volume) and the runtime (it makes the namespace and calls ADD).
func (p *pod) attach() error {
	if err := os.MkdirAll(p.volume(), 0o777); err != nil {
		return err
	}
	if err := quiet("ip", "netns", "add", p.name); err != nil {
		return err
	}
	fmt.Printf("$ CNI_COMMAND=ADD podfabric <<EOF     # as the runtime calls it; other CNI_ variables left out\n%s\n", indent(p.conf()))
	out, err := p.call("ADD")
	if err != nil {
		return fmt.Errorf("ADD for %s: %w: %s", p.name, err, out)
	}
	fmt.Printf("it answers\n%s\n", indent(out))
	text, err := os.ReadFile(filepath.Join(p.volume(), "fabric.json"))
	if err != nil {
		return err
	}
	var doc hint.Document
	if err = json.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("read the hint: %w", err)
	}
	if len(doc.Rails) != 1 || doc.Rails[0].RDMA == nil || doc.Rails[0].RDMA.GIDIndex == nil {
		return fmt.Errorf("the hint of %s names no RDMA device with a GID index:\n%s", p.name, text)
	}
	p.port = *doc.Rails[0].RDMA
	fmt.Printf("and the pod finds in /etc/podfabric/fabric.json\n  device %s, port %d, GID index %d of %s, state %s, RDMA MTU %d\n",
		p.port.Device, p.port.Port, *p.port.GIDIndex, doc.Rails[0].Addresses[0].Addr(), p.port.State, p.port.MTU)
	conf, err := os.ReadFile(filepath.Join(p.volume(), "nccl.conf"))
	if err != nil {
		return err
	}
	fmt.Printf("and in /etc/podfabric/nccl.conf\n%s\n", indent(strings.TrimSpace(string(conf))))
	return nil
}

func (p *pod) detach() error {
	fmt.Printf("$ CNI_COMMAND=DEL podfabric     # for %s\n", p.name)
	if out, err := p.call("DEL"); err != nil {
		return fmt.Errorf("DEL for %s: %w: %s", p.name, err, out)
	}
	return os.RemoveAll(filepath.Join("/var/lib/kubelet/pods", p.uid)) // as kubelet does
}

// call runs the plugin as a container runtime does.
func (p *pod) call(verb string) (string, error) {
	cmd := exec.Command("podfabric")
	cmd.Stdin = strings.NewReader(p.conf())
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID=sandbox-"+p.name, "CNI_IFNAME=net1",
		"CNI_NETNS=/run/netns/"+p.name, "CNI_PATH=/opt/cni/bin",
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME="+p.name+";K8S_POD_UID="+p.uid)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return string(out) + log.String(), err
	}
	return strings.TrimSpace(string(out)), nil
}

// ready waits until the two pods reach each other: the emulated wire takes a moment.
func ready(a, b *pod) error {
	for end := time.Now().Add(30 * time.Second); ; {
		err := quiet("ip", "netns", "exec", a.name, "ping", "-c", "1", "-W", "1", b.ip())
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// bandwidth runs ib_write_bw in both pods and gives the client's output. The client tries until the server listens.
func bandwidth(a, b *pod, indexA, indexB int) (string, error) {
	server := perftest(b, indexB)
	if err := server.Start(); err != nil {
		return "", err
	}
	var out []byte
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		out, err = perftest(a, indexA, b.ip()).CombinedOutput()
		if !strings.Contains(string(out), "Couldn't connect") {
			break
		}
	}
	if err != nil {
		_ = server.Process.Kill() // a client that failed leaves the server waiting for ever
	}
	return string(out), errors.Join(err, server.Wait())
}

func perftest(p *pod, index int, more ...string) *exec.Cmd {
	args := append([]string{
		"netns", "exec", p.name, "timeout", "30", "ib_write_bw", "-d", p.port.Device, "-x", fmt.Sprint(index), "-n", "200", "--report_gbits",
	}, more...)
	return exec.Command("ip", args...)
}

// show runs a command as a reader would, with its output.
func show(name string, args ...string) error {
	fmt.Println("$", name, strings.Join(args, " "))
	out, err := exec.Command(name, args...).CombinedOutput()
	if text := strings.TrimRight(string(out), "\n"); text != "" {
		fmt.Println(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func quiet(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func heading(format string, args ...any) { fmt.Printf("\n== "+format+"\n", args...) }

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
