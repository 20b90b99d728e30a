// SPDX-License-Identifier: Apache-2.0

//go:build lab

package cni

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

// resultCache is where libcni keeps results between calls, unless a test says otherwise.
const resultCache = "/run/libcni-cache"

// Chain is one attachment by a list of plugins, called through libcni (e2e/peers/libcni, to be among the boot profile's peers).
type Chain struct {
	List         string
	ContainerID  string
	IfName       string // empty: net1
	NetNS        string
	UID          string
	Capabilities map[string]any
	Cache        string            // empty: one for all
	Valid        []json.RawMessage // of GC; nil: it is called without a list
}

// Add calls ADD, wants it to succeed, and gives the last result as one of the newest version, and as it was printed.
func (c Chain) Add(t testing.TB) (*types100.Result, string) {
	t.Helper()
	raw, failure := c.Run(t, "ADD")
	if failure != nil {
		t.Fatalf("ADD of %s: code %d: %s", c.ContainerID, failure.Code, failure.Text())
	}
	var of struct {
		CNIVersion string `json:"cniVersion"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		t.Fatalf("result %s: %v", raw, err)
	}
	some, err := version.NewResult(of.CNIVersion, raw)
	if err != nil {
		t.Fatalf("result %s: %v", raw, err)
	}
	result, err := types100.NewResultFromResult(some)
	if err != nil {
		t.Fatalf("result %s: %v", raw, err)
	}
	return result, string(raw)
}

// AddFails calls ADD, wants code and the texts in the answer, calls DEL as the runtime does then, and wants the node unchanged.
func (c Chain) AddFails(t testing.TB, code uint, texts ...string) {
	t.Helper()
	before := Look(t)
	c.Refused(t, code, texts...)
	before.Unchanged(t)
}

// Refused is AddFails for a test that looks at the node itself, once for many.
func (c Chain) Refused(t testing.TB, code uint, texts ...string) {
	t.Helper()
	_, failure := c.Run(t, "ADD")
	failure.is(t, c.ContainerID, code, texts)
	c.Del(t)
}

// Del calls DEL and wants it to succeed.
func (c Chain) Del(t testing.TB) {
	t.Helper()
	if _, failure := c.Run(t, "DEL"); failure != nil {
		t.Fatalf("DEL of %s: code %d: %s", c.ContainerID, failure.Code, failure.Text())
	}
}

// Run calls a verb and gives the result, if the verb has one, or the failure of the plugin that failed.
func (c Chain) Run(t testing.TB, verb string) (json.RawMessage, *Failure) {
	t.Helper()
	ifname, cache := c.IfName, c.Cache
	if ifname == "" {
		ifname = "net1"
	}
	if cache == "" {
		cache = resultCache
	}
	args := [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "tests"}, {"K8S_POD_NAME", c.ContainerID}}
	if c.UID != "" {
		args = append(args, [2]string{"K8S_POD_UID", c.UID})
	}
	request, err := json.Marshal(map[string]any{
		"verb": verb, "list": json.RawMessage(c.List), "plugins": []string{node.Bin}, "cache": cache, "containerID": c.ContainerID,
		"netns": c.NetNS, "ifname": ifname, "args": args, "capabilities": c.Capabilities, "valid": c.Valid, "noList": c.Valid == nil,
	})
	if err != nil {
		t.Fatal(fmt.Errorf("list %s: %w", c.List, err))
	}
	cmd := exec.CommandContext(t.Context(), "libcni")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), &stdout, &stderr
	err = cmd.Run()
	t.Logf("libcni %s %s/%s: %v\n%s%s", verb, c.ContainerID, ifname, err, stdout.Bytes(), stderr.Bytes())
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *Failure        `json:"error"`
	}
	if err != nil {
		t.Fatalf("libcni: %v", err)
	}
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		t.Fatalf("libcni answered %q: %v", stdout.Bytes(), err)
	}
	return answer.Result, answer.Error
}
