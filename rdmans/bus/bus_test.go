// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := map[string]bus.ID{
		"0000:3b:00.2":       bus.PCI(pci.Addr{Bus: 0x3b, Function: 2}),
		"mlx5_core.sf.4":     {Aux: "mlx5_core.sf.4"},
		"mlx5_core.sf.00012": {Aux: "mlx5_core.sf.00012"},
	}
	for text, want := range good {
		got, err := bus.Parse(text)
		if err != nil || got != want || got.String() != text || got.SF() != (want.Aux != "") {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "17", "0000:00:00.0", "eth0", "mlx5_core.sf.", ".sf.4", "mlx5_core.sf.4x", "mlx5 core.sf.4", "../../x.sf.4", "mlx5_core.eth.4",
		"mlx5_core.sf.4\n", strings.Repeat("a", 80) + ".sf.1", "mlx5_core.sf.4.sf.5",
	} {
		if got, err := bus.Parse(text); !errors.Is(err, bus.ErrSyntax) {
			t.Errorf("Parse(%q) = %v, %v; want ErrSyntax", text, got, err)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`"0000:3b:00.2"`, `"mlx5_core.sf.4"`, `""`} {
		var id bus.ID
		if err := json.Unmarshal([]byte(text), &id); err != nil {
			t.Fatal(err)
		}
		if out, err := json.Marshal(id); err != nil || string(out) != text {
			t.Errorf("JSON of %s: %s, %v", text, out, err)
		}
	}
	var id bus.ID
	if err := json.Unmarshal([]byte(`"eth0"`), &id); err == nil || !id.IsZero() {
		t.Errorf("eth0 was taken: %v, %v", id, err)
	}
}
