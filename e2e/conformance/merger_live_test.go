// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

// multusCall is a plugin's call that Multus has built.
type multusCall struct {
	Plugin string
	Env    map[string]string
	Stdin  object
}

// annotated is a pod with an annotation, as Multus sees it.
type annotated struct {
	network  object // config of the NetworkAttachmentDefinition team-a/rail0
	resource string // its resourceName; kubelet has given the pod device
	element  any    // element of the pod's annotation k8s.v1.cni.cncf.io/networks beside name, or the whole in short form
	args     string // more of the runtime's CNI_ARGS
	netns    string
	run      bool // plugins are called
}

const (
	kubeletDevice = "0000:3b:00.2"
	podUID        = "0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a00"
)

// calls lets Multus 4.2.0 build the calls of the network's plugins, from its CmdAdd on. errText is Multus' error.
func (a annotated) calls(t *testing.T) (list []multusCall, errText string) { //nolint:nonamedreturns // tells what the text is
	t.Helper()
	elements := a.element
	if m, isObject := a.element.(object); isObject || a.element == nil {
		elements = []object{with(object{"name": "rail0"}, m)}
	}
	plugins := []string{}
	if a.run {
		plugins = append(plugins, programs(t))
	}
	request := object{
		"networks":   []object{{"name": "rail0", "namespace": "team-a", "resource": a.resource, "config": a.network}},
		"annotation": elements, "pod": "pod-0", "namespace": "team-a", "uid": podUID, "containerID": "annotated", "netns": a.netns, "args": a.args,
		"plugins": plugins, "state": t.TempDir(),
	}
	devices := object{"Data": object{"PodDeviceEntries": []object{{
		"PodUID": podUID, "ContainerName": "c", "ResourceName": a.resource, "DeviceIDs": object{"-1": []string{kubeletDevice}}, "AllocResp": "",
	}}, "RegisteredDevices": object{}}, "Checksum": 0}
	// Multus looks for kubelet's list of devices in one place only, so that place is this call's own.
	const script = `mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/kubelet/device-plugins && printf %s "$1" > /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint && exec "$2"`
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", script, "sh", encode(t, devices), merger(t))
	cmd.Stdin = strings.NewReader(encode(t, request))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("multus: %v: %s", err, stderr.Bytes())
	}
	var answer struct {
		Calls []multusCall
		Error string
	}
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		t.Fatalf("%v: %s", err, stdout.Bytes())
	}
	for _, c := range answer.Calls {
		if filepath.Base(c.Plugin) == "podfabric" {
			list = append(list, c)
		}
	}
	return list, answer.Error
}

// merger builds the program that calls Multus, once. It is large, so only the tests that need it wait for it.
func merger(t *testing.T) string {
	t.Helper()
	bin := programs(t)
	path := filepath.Join(bin, "multus")
	if _, err := os.Stat(path); err != nil {
		build(t, "../peers/multus", ".", bin)
	}
	return path
}

// add gives the one call of ADD.
func (a annotated) add(t *testing.T) multusCall {
	t.Helper()
	list, errText := a.calls(t)
	if len(list) != 1 || list[0].Env["CNI_COMMAND"] != "ADD" {
		t.Fatalf("calls %+v, error %s", list, errText)
	}
	return list[0]
}

// parse reads a call as ADD of podfabric does.
func (c multusCall) parse(t *testing.T, n netconf.Node) (netconf.Conf, error) {
	t.Helper()
	return netconf.Parse(netconf.Raw{
		Stdin: []byte(encode(t, c.Stdin)), ContainerID: c.Env["CNI_CONTAINERID"], NetNS: c.Env["CNI_NETNS"], IfName: c.Env["CNI_IFNAME"],
		Args: c.Env["CNI_ARGS"], Path: c.Env["CNI_PATH"],
	}, n)
}
