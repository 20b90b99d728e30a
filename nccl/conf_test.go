// SPDX-License-Identifier: Apache-2.0

package nccl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/nccl"
)

// The table of reference/nccl.md §1.2, which was taken from the loaders of 2.18.3, 2.26.2 and 2.30.7 themselves.
func TestParseConf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000)
	tests := []struct {
		name, text string
		want       [3][]nccl.Pair
	}{
		{"pair", "A=b\n", all(nccl.Pair{"A", "b"})},
		{"no newline at the end", "A=b", all(nccl.Pair{"A", "b"})},
		{"comment", "# why\n", all()},
		{"comment with a pair", "#A=b\n# c=d\n", [3][]nccl.Pair{{{"#A", "b"}, {"# c", "d"}}, nil, nil}},
		{"indented comment", "  # a=b\n", all(nccl.Pair{"  # a", "b"})},
		{"leading blank", " A=b\n", all(nccl.Pair{" A", "b"})},
		{"blanks around the sign", "A = b\n", all(nccl.Pair{"A ", " b"})},
		{"export", "export A=b\n", all(nccl.Pair{"export A", "b"})},
		{"trailing blanks", "A=b  \n", all(nccl.Pair{"A", "b  "})},
		{"comment behind a value", "A=3 # why\n", all(nccl.Pair{"A", "3 # why"})},
		{"quotes", "A=\"b\"\n", all(nccl.Pair{"A", `"b"`})},
		{"CRLF", "A=b\r\n", [3][]nccl.Pair{{{"A", "b\r"}}, {{"A", "b\r"}}, {{"A", "b"}}}},
		{"no name", "=v\n", all()},
		{"no sign", "A\n\n", all()},
		{"two signs", "NCCL_IB_HCA==mlx5_5:1\n", all(nccl.Pair{"NCCL_IB_HCA", "=mlx5_5:1"})},
		{"first wins", "A=1\nA=2\n", all(nccl.Pair{"A", "1"})},
		{"empty value", "A=\nA=2\n", all(nccl.Pair{"A", ""})},
		{"long value", "A=" + long + "\n", all(nccl.Pair{"A", long[:1023]})},
		{"long name", long + "=v\n", all(nccl.Pair{long[:1023], "v"})},
		{
			"line longer than a piece", "A=" + strings.Repeat("y", 4093) + "B=c\n",
			[3][]nccl.Pair{
				{{"A", strings.Repeat("y", 1023)}},
				{{"A", strings.Repeat("y", 1023)}},
				{{"A", strings.Repeat("y", 1023)}, {"B", "c"}},
			},
		},
		{"zero byte", "A=b\x00c\nD\x00=e\n", all(nccl.Pair{"A", "b"})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for i, v := range []string{"2.18.3", "2.26.2", "2.30.7"} {
				if diff := cmp.Diff(tt.want[i], nccl.ParseConf(version(t, v), []byte(tt.text))); diff != "" {
					t.Errorf("NCCL %s (-want +got):\n%s", v, diff)
				}
			}
		})
	}
}

func all(pairs ...nccl.Pair) [3][]nccl.Pair { return [3][]nccl.Pair{pairs, pairs, pairs} }

func TestRender(t *testing.T) {
	t.Parallel()
	got, err := nccl.Render(
		[]string{"podfabric", "a=b\nNCCL_NET_PLUGIN=/tmp/x.so", "rail\t\x7f é", ""},
		[]nccl.Setting{{"NCCL_IB_HCA", "=mlx5_5:1", "x=y\n"}, {"NCCL_IB_TC", "106", ""}},
	)
	want := "# podfabric\n# a:b?NCCL_NET_PLUGIN:/tmp/x.so\n# rail?? ?\n#\n# x:y?\nNCCL_IB_HCA==mlx5_5:1\nNCCL_IB_TC=106\n"
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRenderRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		list []nccl.Setting
	}{
		{"newline in a value", []nccl.Setting{{"A", "1\nNCCL_NET_PLUGIN=/x", ""}}},
		{"carriage return", []nccl.Setting{{"A", "1\r", ""}}},
		{"zero byte", []nccl.Setting{{"A", "1\x002", ""}}},
		{"not ASCII", []nccl.Setting{{"A", "é", ""}}},
		{"empty value, which NCCL takes for unset", []nccl.Setting{{"A", "", ""}}},
		{"blank at the end, which NCCL keeps", []nccl.Setting{{"A", "b ", ""}}},
		{"long value", []nccl.Setting{{"A", strings.Repeat("1", 1000), ""}}},
		{"blank in a name", []nccl.Setting{{"A B", "1", ""}}},
		{"hash in a name", []nccl.Setting{{"#A", "1", ""}}},
		{"empty name", []nccl.Setting{{"", "1", ""}}},
		{"long name, which NCCL cuts", []nccl.Setting{{strings.Repeat("A", 1024), "1", ""}}},
		{"name twice", []nccl.Setting{{"A", "1", ""}, {"A", "2", ""}}},
	}
	for _, tt := range tests {
		if got, err := nccl.Render(nil, tt.list); !errors.Is(err, nccl.ErrUnwritable) {
			t.Errorf("%s: Render = %q, %v; want ErrUnwritable", tt.name, got, err)
		}
	}
}

// Whatever Render lets through, every generation reads exactly that and nothing else.
func FuzzRender(f *testing.F) {
	f.Add("why", "NCCL_IB_HCA", "=mlx5_5:1", "reason")
	f.Add("a=b", "A", "1\n", "#x=y\r\n")
	f.Add(strings.Repeat("z", 5000)+"A=b", "A", "1", "")
	f.Fuzz(func(t *testing.T, comment, name, value, reason string) {
		text, err := nccl.Render([]string{comment}, []nccl.Setting{{name, value, reason}})
		if err != nil {
			return
		}
		for _, v := range append(nccl.Generations(), nccl.Version{Major: 2, Minor: 3, Patch: 5}) {
			want := []nccl.Pair{{name, value}}
			if diff := cmp.Diff(want, nccl.ParseConf(v, text)); diff != "" {
				t.Errorf("NCCL %s (-want +got):\n%s", v, diff)
			}
		}
	})
}

func FuzzParseConf(f *testing.F) {
	f.Add([]byte("A=b\r\n#c=d\n=\n"))
	f.Add([]byte(strings.Repeat("x", 4095) + "=\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, v := range nccl.Generations() {
			seen := map[string]bool{}
			for _, p := range nccl.ParseConf(v, text) {
				if p.Name == "" || seen[p.Name] || len(p.Name) > 1023 || len(p.Value) > 1023 || strings.ContainsAny(p.Name+p.Value, "\x00\n") {
					t.Errorf("NCCL %s: %q", v, p)
				}
				seen[p.Name] = true
			}
		}
	})
}
