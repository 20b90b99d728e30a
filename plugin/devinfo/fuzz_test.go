// SPDX-License-Identifier: Apache-2.0

package devinfo_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/devinfo"
)

// FuzzWrite: a file is refreshed, or refused as foreign and left byte by byte. Refreshed, it is JSON with our three values in it and
// all that was there before but them, type and version.
func FuzzWrite(f *testing.F) {
	for _, s := range []string{
		"", " \n", "{}", "null", "[]", "7", `{"type":"pci"}`, `{"type":"PCI"}`, `{"type":"vdpa","vdpa":{}}`, `{"type":"pci","pci":{"pci-address":"x","a":[1]},"b":1e400}`,
		`{"type":"pci","type":"vdpa"}`, `{"pci":null}`, `{"pci":{}}{}`, "{\"a\\u0000\":\"\xff\"}", `{"type":"pci","pci":{"pci-address":{"deep":[[[[]]]]}}}`,
	} {
		f.Add([]byte(s), "0000:3b:00.2", "", "mlx5_2")
		f.Add([]byte(s), "\x1b[2J\"}", "\xff", "\u202e")
	}
	f.Fuzz(func(t *testing.T, before []byte, address, pf, rdma string) {
		root := t.TempDir()
		file := filepath.Join(root, path)
		put(t, file, string(before))
		err := devinfo.Store{Root: root}.Write(path, devinfo.Info{PCI: address, PF: pf, RDMA: rdma})
		after, readErr := os.ReadFile(file)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if err != nil {
			if !errors.Is(err, devinfo.ErrForeign) || string(after) != string(before) {
				t.Errorf("%v; %q became %q", err, before, after)
			}
			return
		}
		was, is := object(before), object(after)
		if is == nil || is["type"] != "pci" || is["version"] != "1.1.0" {
			t.Fatalf("%q became %q", before, after)
		}
		ours := map[string]string{"pci-address": address, "pf-pci-address": pf, "rdma-device": rdma}
		wasPCI, _ := was["pci"].(map[string]any)
		isPCI, _ := is["pci"].(map[string]any)
		for key, value := range ours {
			if value != "" && utf8.ValidString(value) && isPCI[key] != value {
				t.Errorf("%s is %v, want %q", key, isPCI[key], value)
			}
		}
		for key, value := range wasPCI {
			if ours[key] == "" && !cmp.Equal(value, isPCI[key]) {
				t.Errorf("pci.%s was %v and is %v", key, value, isPCI[key])
			}
		}
		for key, value := range was {
			if key != "type" && key != "version" && key != "pci" && !cmp.Equal(value, is[key]) {
				t.Errorf("%s was %v and is %v", key, value, is[key])
			}
		}
	})
}

func object(text []byte) map[string]any {
	var v map[string]any
	_ = json.Unmarshal(text, &v)
	return v
}
