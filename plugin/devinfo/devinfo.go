// SPDX-License-Identifier: Apache-2.0

// Package devinfo writes the device-info file of the Network Plumbing Working Group's specification 1.1.0, by which Multus tells
// a pod what an attachment is made of (annotation k8s.v1.cni.cncf.io/network-status). It decides nothing about devices.
package devinfo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/podfabric/podfabric/plugin/statedir"
)

// version is that of the specification which has "rdma-device".
const version = "1.1.0"

// sizeMax is more than any device-info file needs; a larger one is somebody else's.
const sizeMax = 64 << 10

// ErrForeign is wrapped when what stands in the file is no device-info of a PCI device; it is left as it is.
var ErrForeign = errors.New("not a device-info file of a PCI device")

// Info is what podfabric knows of a device. Empty fields say nothing.
type Info struct {
	PCI  string // "pci-address"
	PF   string // "pf-pci-address"
	RDMA string // "rdma-device", as the pod sees it
}

// Store writes below Root, the node's file system.
type Store struct{ Root string }

// Write makes the file at path, which is absolute below Root, or refreshes the fields that podfabric knows in the one that the
// device plugin wrote and Multus copied: names change when a device moves. Other fields stay.
func (s Store) Write(path string, info Info) error {
	folder := filepath.Join(s.Root, filepath.Dir(path))
	name := filepath.Base(path)
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // Multus makes it with this mode, others read there
		return statedir.Explain(folder, folder, err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return statedir.Explain(folder, folder, err)
	}
	defer root.Close()
	doc, err := read(root, name)
	if err != nil {
		return fmt.Errorf("refresh device-info %s: %w", filepath.Join(folder, name), err)
	}
	text, err := merge(doc, info)
	if err != nil {
		return fmt.Errorf("refresh device-info %s: %w", filepath.Join(folder, name), err)
	}
	return statedir.Write(root, name, text)
}

// read gives the file's object; a missing or empty file is an empty one.
func read(root *os.Root, name string) (map[string]json.RawMessage, error) {
	text, err := statedir.Read(root, name, sizeMax)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]json.RawMessage{}, nil
	case errors.Is(err, statedir.ErrKind):
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	case err != nil:
		return nil, statedir.Explain(root.Name(), filepath.Join(root.Name(), name), err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return map[string]json.RawMessage{}, nil
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if doc == nil {
		return nil, fmt.Errorf("it is null: %w", ErrForeign)
	}
	return doc, nil
}

// merge puts what is known into a document.
func merge(doc map[string]json.RawMessage, info Info) ([]byte, error) {
	var kind string
	if text, found := doc["type"]; found {
		if json.Unmarshal(text, &kind) != nil || kind != "pci" {
			return nil, fmt.Errorf("its type is %s: %w", text, ErrForeign)
		}
	}
	device := map[string]json.RawMessage{}
	if text, found := doc["pci"]; found {
		if err := json.Unmarshal(text, &device); err != nil || device == nil {
			return nil, fmt.Errorf("its pci is no object: %w", ErrForeign)
		}
	}
	out := map[string]any{}
	for key, value := range maps.All(doc) {
		out[key] = value
	}
	pci := map[string]any{}
	for key, value := range maps.All(device) {
		pci[key] = value
	}
	for key, value := range map[string]string{"pci-address": info.PCI, "pf-pci-address": info.PF, "rdma-device": info.RDMA} {
		if value != "" {
			pci[key] = value
		}
	}
	out["type"], out["version"], out["pci"] = "pci", version, pci
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return text, nil
}
