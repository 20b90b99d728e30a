// SPDX-License-Identifier: Apache-2.0

// Command multus lets Multus build the calls of its plugins from a pod's annotation and networks, with its own code from its CmdAdd
// on, and prints them: what a plugin would read from standard input and from CNI_ARGS. The API server is a fake one of client-go's.
// Plugins that are in the given folders are run, others answer with an empty result. One request as JSON on standard input, one
// answer as JSON on standard output; exit 0 also when Multus or a plugin fails. It is for tests.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
	nettypes "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	netfake "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/client/clientset/versioned/fake"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/k8sclient"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/multus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
)

// network is a NetworkAttachmentDefinition.
type network struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Resource  string          `json:"resource"` // the annotation k8s.v1.cni.cncf.io/resourceName; empty: none
	Config    json.RawMessage `json:"config"`   // spec.config
}

// request is one pod that Multus is called for.
type request struct {
	Networks    []network       `json:"networks"`
	Annotation  json.RawMessage `json:"annotation"` // k8s.v1.cni.cncf.io/networks of the pod
	Pod         string          `json:"pod"`
	Namespace   string          `json:"namespace"`
	UID         string          `json:"uid"`
	ContainerID string          `json:"containerID"`
	NetNS       string          `json:"netns"`
	Args        string          `json:"args"`    // CNI_ARGS, beyond the pod's names
	Plugins     []string        `json:"plugins"` // folders of plugins that are run
	State       string          `json:"state"`   // folder for Multus' and libcni's files
}

// call is one call of a plugin.
type call struct {
	Plugin string            `json:"plugin"`
	Env    map[string]string `json:"env"` // variables CNI_*
	Stdin  json.RawMessage   `json:"stdin"`
}

// answer is what came of it.
type answer struct {
	Calls []call `json:"calls"`
	Error string `json:"error,omitempty"`
}

func main() {
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		fmt.Fprintln(os.Stderr, "multus: read the request:", err)
		os.Exit(2)
	}
	a, err := r.add()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(a)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "multus:", err)
		os.Exit(2)
	}
}

// add calls Multus as a runtime does.
func (r request) add() (answer, error) {
	ctx := context.Background()
	names := fmt.Sprintf("IgnoreUnknown=1;K8S_POD_NAMESPACE=%s;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s;K8S_POD_UID=%s",
		r.Namespace, r.Pod, r.ContainerID, r.UID)
	if r.Args != "" {
		names += ";" + r.Args
	}
	if err := os.Setenv("CNI_ARGS", names); err != nil {
		return answer{}, err
	}
	conf, err := json.Marshal(map[string]any{
		"cniVersion": "1.0.0", "name": "multus", "type": "multus", "cniDir": r.State, "confDir": r.State, "binDir": "/nowhere", "logToStderr": false,
		"delegates": []map[string]any{{"cniVersion": "1.0.0", "name": "default", "type": "overlay"}},
	})
	if err != nil {
		return answer{}, err
	}
	annotation := string(r.Annotation)
	var short string // the form without JSON
	if json.Unmarshal(r.Annotation, &short) == nil {
		annotation = short
	}
	client := &k8sclient.ClientInfo{Client: fake.NewSimpleClientset(), NetClient: netfake.NewSimpleClientset(), EventRecorder: record.NewFakeRecorder(100)}
	if _, err = client.AddPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: r.Pod, Namespace: r.Namespace, UID: types.UID(r.UID), Annotations: map[string]string{nettypes.NetworkAttachmentAnnot: annotation},
	}}); err != nil {
		return answer{}, err
	}
	for _, n := range r.Networks {
		def := &nettypes.NetworkAttachmentDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, Namespace: n.Namespace}, Spec: nettypes.NetworkAttachmentDefinitionSpec{Config: string(n.Config)},
		}
		if n.Resource != "" {
			def.Annotations = map[string]string{"k8s.v1.cni.cncf.io/resourceName": n.Resource}
		}
		if _, err = client.NetClient.K8sCniCncfIoV1().NetworkAttachmentDefinitions(n.Namespace).Create(ctx, def, metav1.CreateOptions{}); err != nil {
			return answer{}, err
		}
	}
	e := &watching{plugins: r.Plugins}
	args := &skel.CmdArgs{ContainerID: r.ContainerID, Netns: r.NetNS, IfName: "eth0", Args: names, StdinData: conf}
	_, err = multus.CmdAdd(args, e, client)
	a := answer{Calls: e.calls}
	if err != nil {
		a.Error = err.Error()
	}
	return a, nil
}

// watching is libcni's way to its plugins.
type watching struct {
	version.PluginDecoder
	plugins []string
	calls   []call
}

// FindInPath finds the plugins that are there; the others are called by their names.
func (w *watching) FindInPath(plugin string, _ []string) (string, error) {
	if found, err := invoke.FindInPath(plugin, w.plugins); err == nil {
		return found, nil
	}
	return plugin, nil
}

// ExecPlugin notes the call.
func (w *watching) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	c := call{Plugin: path, Env: map[string]string{}, Stdin: stdin}
	for _, v := range environ {
		if key, value, _ := strings.Cut(v, "="); strings.HasPrefix(key, "CNI_") {
			c.Env[key] = value // the last one counts, as for the plugin
		}
	}
	w.calls = append(w.calls, c)
	if !strings.Contains(path, "/") {
		return []byte(`{"cniVersion":"1.0.0"}`), nil
	}
	real := &invoke.RawExec{Stderr: os.Stderr}
	return real.ExecPlugin(ctx, path, stdin, environ)
}
