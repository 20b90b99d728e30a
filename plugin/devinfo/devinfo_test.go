// SPDX-License-Identifier: Apache-2.0

package devinfo_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/devinfo"
)

const path = "/var/run/k8s.cni.cncf.io/devinfo/cni/rail0-cid-net1-device.json"

// The expected files are the specification's (device-info-spec 1.1.0, section "PCI Device"), by hand.
func TestWrite(t *testing.T) {
	t.Parallel()
	vf := devinfo.Info{PCI: "0000:3b:00.2", PF: "0000:3b:00.0", RDMA: "mlx5_2"}
	tests := []struct {
		name, before string
		info         devinfo.Info
		want         string
	}{
		{
			"no file", "", vf,
			`{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:3b:00.2","pf-pci-address":"0000:3b:00.0","rdma-device":"mlx5_2"}}`,
		},
		{
			"the device plugin's, of before a rename", `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:3b:00.2","rdma-device":"rocep1",
			"vhost-net":"/dev/vhost-net"},"other":{"kept":1}}`, vf,
			`{"type":"pci","version":"1.1.0","other":{"kept":1},"pci":{"pci-address":"0000:3b:00.2","pf-pci-address":"0000:3b:00.0",
			"rdma-device":"mlx5_2","vhost-net":"/dev/vhost-net"}}`,
		},
		{
			"version 1.0.0, and no RDMA device", `{"type":"pci","version":"1.0.0","pci":{"pci-address":"0000:3b:00.2"}}`,
			devinfo.Info{PCI: "0000:3b:00.2"},
			`{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:3b:00.2"}}`,
		},
		{"an empty file", " \n", devinfo.Info{PCI: "0000:3b:00.2"}, `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:3b:00.2"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			file := filepath.Join(root, path)
			if tt.before != "" {
				put(t, file, tt.before)
			}
			if err := (devinfo.Store{Root: root}).Write(path, tt.info); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, tt.want), parse(t, string(text))); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
		})
	}
}

// What is not ours to refresh stays as it is.
func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"another type":    `{"type":"vdpa","version":"1.1.0","vdpa":{}}`,
		"type no string":  `{"type":7}`,
		"pci no object":   `{"type":"pci","pci":[]}`,
		"no JSON":         `pci`,
		"a list":          `[]`,
		"far too long":    `{"type":"pci","pad":"` + strings.Repeat("x", 1<<17) + `"}`,
		"null instead":    `{"type":"pci","pci":null}`,
		"null altogether": `null `,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			file := filepath.Join(root, path)
			put(t, file, before)
			err := devinfo.Store{Root: root}.Write(path, devinfo.Info{PCI: "0000:3b:00.2"})
			if !errors.Is(err, devinfo.ErrForeign) {
				t.Errorf("error %v, want ErrForeign", err)
			}
			if text, readErr := os.ReadFile(file); readErr != nil || string(text) != before {
				t.Errorf("file is %.40q now, %v", text, readErr)
			}
		})
	}
}

// A folder or a link in the file's place leads nowhere else, and a full or missing file system names the path.
func TestWriteIntoOddPlaces(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, path)
	secret := filepath.Join(root, "secret")
	put(t, secret, `{"type":"pci"}`)
	put(t, filepath.Join(filepath.Dir(file), "x"), "")
	if err := os.Symlink(secret, file); err != nil {
		t.Fatal(err)
	}
	if err := (devinfo.Store{Root: root}).Write(path, devinfo.Info{PCI: "0000:3b:00.2"}); !errors.Is(err, devinfo.ErrForeign) {
		t.Errorf("a symbolic link: %v, want ErrForeign", err)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != `{"type":"pci"}` {
		t.Errorf("what the link leads to is %q now, %v", text, err)
	}
	flat := filepath.Join(t.TempDir(), "file")
	put(t, flat, "")
	err := devinfo.Store{Root: flat}.Write(path, devinfo.Info{})
	if err == nil || strings.Contains(err.Error(), "no such file or directory") || !strings.Contains(err.Error(), flat) {
		t.Errorf("no folder: %v", err)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}
