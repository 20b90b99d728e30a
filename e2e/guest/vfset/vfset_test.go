// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package vfset_test is about devices given whole and about what a PF's driver holds for its VFs: set at ADD, as ip(8) shows it,
// and back to what it was however the attachment ends.
package vfset_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The third NIC loses its VFs to be a device as a whole.
//
//lab:boot pfs=3 vfs=4 mode=exclusive seconds=1500

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

// network is a configuration for a function; more are further keys, each beginning with a comma.
func network(device, address string, more ...string) string {
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric"%s%s,
		"ipam":{"type":"static","addresses":[{"address":%q}]}%s}`,
		by("deviceID", device), strings.Join(more, ""), address, patience(more))
}

// by is a key with a text, "" when the text is.
func by(key, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(`,%q:%q`, key, text)
}

func patience(more []string) string {
	if strings.Contains(strings.Join(more, ""), `"rdma"`) {
		return ""
	}
	return `,"rdma":{"wait":"30s"}`
}

// held is what a PF's driver holds for a VF, as ip(8) shows it.
type held struct {
	Number int    `json:"vf"`
	MAC    string `json:"address"`
	VLAN   []struct {
		ID  int `json:"vlan"`
		QoS int `json:"qos"`
	} `json:"vlan_list"`
	Rate struct {
		Max int `json:"max_tx"`
	} `json:"rate"`
	Spoofchk bool `json:"spoofchk"`
	Trust    bool `json:"trust"`
}

// String puts it into one line.
func (h held) String() string {
	vlan := "no vlan"
	if len(h.VLAN) > 0 && h.VLAN[0].ID != 0 {
		vlan = fmt.Sprintf("vlan %d qos %d", h.VLAN[0].ID, h.VLAN[0].QoS)
	}
	return fmt.Sprintf("mac %s %s spoofchk %t trust %t max_tx_rate %d", h.MAC, vlan, h.Spoofchk, h.Trust, h.Rate.Max)
}

// shown asks ip(8) for VF number vf of a PF.
func shown(t *testing.T, pf string, vf int) held {
	t.Helper()
	var links []struct {
		VFs []held `json:"vfinfo_list"`
	}
	text := node.Run(t, "ip", "-d", "-j", "link", "show", "dev", node.Netdev(pf))
	if err := json.Unmarshal([]byte(text), &links); err != nil || len(links) != 1 {
		t.Fatalf("ip link show: %v: %s", err, text)
	}
	i := slices.IndexFunc(links[0].VFs, func(h held) bool { return h.Number == vf })
	if i < 0 {
		t.Fatalf("no VF %d: %s", vf, text)
	}
	return links[0].VFs[i]
}

// set gives VF 1 settings behind everybody's back.
func set(t *testing.T, pf string, args ...string) {
	t.Helper()
	node.Run(t, "ip", append([]string{"link", "set", node.Netdev(pf), "vf", "1"}, args...)...)
}

// macIn is the effective MAC of net1 in a pod.
func macIn(t *testing.T, pod *node.NS) string {
	t.Helper()
	return pod.Run(t, "cat", "/sys/class/net/net1/address")
}

// target is a path without links.
func target(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// refused calls ADD and wants code and texts in its error. The node is for the caller to compare: once for a whole table, since each
// look takes seconds under emulation.
func refused(t *testing.T, c cni.Call, code uint, texts ...string) {
	t.Helper()
	_, failure := c.Run(t, "ADD")
	if failure == nil {
		c.Del(t)
		t.Fatalf("ADD succeeded; wanted code %d", code)
	}
	if failure.Code != code {
		t.Errorf("ADD: code %d: %s; wanted code %d", failure.Code, failure.Text(), code)
	}
	for _, text := range texts {
		if !strings.Contains(failure.Text(), text) {
			t.Errorf("ADD: %s\nwanted %q in it", failure.Text(), text)
		}
	}
}

// whole takes the VFs of the third NIC away and gives its address.
func whole(t *testing.T) string {
	t.Helper()
	pf := node.PF(t, 3)
	file := "/sys/bus/pci/devices/" + pf + "/sriov_numvfs"
	if n, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(n)) != "0" {
		node.Write(t, file, "0")
	}
	settled(t, pf)
	return pf
}

// settled waits until a PF that came home is as it was there: its carrier, and with it the address that the kernel gives a link
// that is up, take their time.
func settled(t *testing.T, pf string) {
	t.Helper()
	node.Wait(t, "an address of the kernel's on "+pf, func() bool {
		out, err := node.Try("ip", "-6", "addr", "show", "dev", node.Netdev(pf), "scope", "link")
		return err == nil && strings.Contains(out, "fe80::") && !strings.Contains(out, "tentative")
	})
}
