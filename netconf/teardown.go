// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/podfabric/podfabric/rdmans/bus"
)

// ParseTeardown reads the input of DEL, CHECK, GC and STATUS. It needs one JSON object with a name; of the rest it takes what
// it can and passes over what it cannot, so that neither an author's mistake nor a newer key keeps a pod from going away.
// Of prevResult only whether there is one counts here: libcni adds it to every plugin on CHECK and DEL. Errors are *Problem: code 6 for a text that
// is not a JSON object, 7 for a missing name, 4 for a container ID or interface name that cannot be a file's.
//
// An ipam section that ADD would have refused (no type, dhcp, podfabric itself, a path for a type) is of kind none: no address can have come
// from it. Range and static need no configuration to be given back, a delegate gets the whole of it.
func ParseTeardown(r Raw) (Teardown, error) {
	doc, err := parseDocument(stdin, r.Stdin)
	if err != nil {
		return Teardown{}, err
	}
	t := Teardown{
		CNIVersion: doc.root.get("cniVersion").str(),
		Name:       doc.root.get("name").str(),
		Request:    Request{ContainerID: r.ContainerID, IfName: r.IfName, NetNS: r.NetNS, Path: r.Path, Args: r.Args},
	}
	if t.Name == "" {
		return Teardown{}, invalid(`add a "name" to the network`, "name", doc.root.get("name"), "the name that ADD was called with")
	}
	if !pathSafe(r.ContainerID) {
		return Teardown{}, environment("give the container ID that ADD was called with", "CNI_CONTAINERID", r.ContainerID,
			"letters, digits and _ . -")
	}
	if !pathSafe(r.IfName) {
		return Teardown{}, environment("give the interface name that ADD was called with", "CNI_IFNAME", r.IfName,
			"letters, digits and _ . -")
	}
	// GC and STATUS come without CNI_ARGS, and what is wrong there only takes names from messages.
	if args, err := parseArgs(r.Args); err == nil {
		t.Request.Pod = podAsFar(args)
	}
	t.IPAM.Kind, t.IPAM.Plugin = ipamKind(doc.root)
	if t.IPAM.Kind == IPAMDelegate {
		t.IPAM.Delegate = bytes.Clone(r.Stdin)
	}
	t.Attachments = attachments(doc.root)
	if kind := Kind(doc.root.get("link").str()); slices.Contains(allKinds(), kind) {
		t.Kind = kind
	}
	t.Device, _ = bus.Parse(cmp.Or(doc.root.get("deviceID").str(), doc.root.get("pciBusID").str()))
	t.Alone = doc.root.get("prevResult") == nil && slices.Contains([]string{"0.4.0", "1.0.0", "1.1.0"}, t.CNIVersion)
	return t, nil
}

// podAsFar is podOf without what is wrong.
func podAsFar(args []arg) Pod {
	var pod Pod
	for _, a := range args {
		one, err := podOf([]arg{a})
		if err != nil {
			continue
		}
		pod.UID += one.UID
		pod.Name += one.Name
		pod.Namespace += one.Namespace
	}
	return pod
}

// attachments reads GC's list of what must stay: "cni.dev/valid-attachments" (CNI 1.1.0, section GC), before the final text
// "cni.dev/attachments". One entry that cannot be read makes the whole list count as none: what it stood for would be deleted.
func attachments(root *value) []Attachment {
	v := root.get("cni.dev/valid-attachments")
	if v == nil {
		v = root.get("cni.dev/attachments")
	}
	if v == nil || v.shape != shapeList {
		return nil
	}
	list := make([]Attachment, 0, len(v.items))
	for _, it := range v.items {
		a := Attachment{ContainerID: it.get("containerID").str(), IfName: it.get("ifname").str()}
		if a.ContainerID == "" || a.IfName == "" {
			return nil
		}
		list = append(list, a)
	}
	return list
}
