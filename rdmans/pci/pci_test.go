// SPDX-License-Identifier: Apache-2.0

package pci_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/podfabric/podfabric/rdmans/pci"
)

func TestParse(t *testing.T) {
	t.Parallel()
	good := map[string]pci.Addr{
		"0000:3b:00.2":     {Bus: 0x3b, Function: 2},
		"0000:3B:1f.7":     {Bus: 0x3b, Device: 31, Function: 7},
		"10000:01:00.0":    {Domain: 0x10000, Bus: 1},
		"00010000:01:00.0": {Domain: 0x10000, Bus: 1},
	}
	for text, want := range good {
		got, err := pci.Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "17", "3b:00.2", "0000:3b:00", "0000:3b:00.8", "0000:3b:20.0", "0000:3g:00.0", "0000:3b:00.2 ", " 0000:3b:00.2",
		"0000:3b:00.2\n", "../0000:3b:00.2", "0000:3b-00.2", "000000000:3b:00.0", "000:3b:00.0", "+000:3b:00.0", "mlx5_core.sf.4",
	} {
		if got, err := pci.Parse(text); !errors.Is(err, pci.ErrSyntax) {
			t.Errorf("Parse(%q) = %v, %v; want ErrSyntax", text, got, err)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	type box struct{ A, B pci.Addr }
	in := box{A: pci.Addr{Domain: 0x10000, Bus: 0xaf, Device: 1, Function: 3}}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"A":"10000:af:01.3","B":""}`; string(text) != want {
		t.Errorf("Marshal = %s, want %s", text, want)
	}
	var out box
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("Unmarshal = %v, %v; want %v", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"A":"x"}`), &out); !errors.Is(err, pci.ErrSyntax) {
		t.Errorf("Unmarshal of x: %v, want ErrSyntax", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0000:3b:00.2")
	f.Add("10000:01:1f.7")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := pci.Parse(s)
		if err != nil {
			return
		}
		if again, err := pci.Parse(a.String()); err != nil || again != a {
			t.Errorf("Parse(%q) = %v, whose own text parses as %v, %v", s, a, again, err)
		}
	})
}
