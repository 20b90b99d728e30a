// SPDX-License-Identifier: Apache-2.0

// Command libcni calls plugins as a container runtime does, through the library that runtimes use: it injects name, version,
// runtimeConfig and prevResult, caches results and stops a list's DEL at the first error. One request as JSON on standard
// input, one answer as JSON on standard output; exit 0 also when a plugin fails. It is for tests.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
)

// request is one call of a list of plugins.
type request struct {
	Verb         string               `json:"verb"` // ADD, CHECK, DEL, GC, STATUS, VALIDATE
	List         json.RawMessage      `json:"list"`
	Plugins      []string             `json:"plugins"` // folders of plugins
	Cache        string               `json:"cache"`   // folder of results
	ContainerID  string               `json:"containerID"`
	NetNS        string               `json:"netns"`
	IfName       string               `json:"ifname"`
	Args         [][2]string          `json:"args"`
	Capabilities map[string]any       `json:"capabilities"`
	Valid        []types.GCAttachment `json:"valid"`  // of GC
	NoList       bool                 `json:"noList"` // GC is called without a list
}

// answer is what came of it.
type answer struct {
	Result any          `json:"result,omitempty"`
	Error  *types.Error `json:"error,omitempty"`
}

func main() {
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		fmt.Fprintln(os.Stderr, "libcni: read the request:", err)
		os.Exit(2)
	}
	if err := respond(os.Stdout, r); err != nil {
		fmt.Fprintln(os.Stderr, "libcni:", err)
		os.Exit(2)
	}
}

func respond(w io.Writer, r request) error {
	list, err := libcni.ConfListFromBytes(r.List)
	if err != nil {
		return print(w, nil, err)
	}
	c := libcni.NewCNIConfigWithCacheDir(r.Plugins, r.Cache, nil)
	result, err := call(c, list, r)
	return print(w, result, err)
}

func call(c *libcni.CNIConfig, list *libcni.NetworkConfigList, r request) (any, error) {
	ctx := context.Background()
	conf := &libcni.RuntimeConf{
		ContainerID: r.ContainerID, NetNS: r.NetNS, IfName: r.IfName, Args: r.Args, CapabilityArgs: r.Capabilities,
	}
	switch r.Verb {
	case "ADD":
		return c.AddNetworkList(ctx, list, conf)
	case "CHECK":
		return nil, c.CheckNetworkList(ctx, list, conf)
	case "DEL":
		return nil, c.DelNetworkList(ctx, list, conf)
	case "STATUS":
		return nil, c.GetStatusNetworkList(ctx, list)
	case "VALIDATE":
		return c.ValidateNetworkList(ctx, list)
	case "GC":
		args := &libcni.GCArgs{ValidAttachments: r.Valid}
		if r.NoList {
			args = nil
		}
		return nil, c.GCNetworkList(ctx, list, args)
	}
	return nil, fmt.Errorf("verb %q is none", r.Verb)
}

func print(w io.Writer, result any, err error) error {
	a := answer{Result: result}
	var said *types.Error
	switch {
	case errors.As(err, &said):
		a.Error = said
	case err != nil:
		a.Error = &types.Error{Msg: err.Error()}
	}
	return json.NewEncoder(w).Encode(a)
}
