// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// Snapshot is everything of a machine that this project can change, at one moment: two of them that are equal say that nothing
// was left behind. Numbers that the kernel gives anew on every move (the index of a netdev) are not in it.
type Snapshot struct {
	Mode      string                   `json:"mode"`      // RDMA namespace mode; empty: no RDMA
	NetNS     map[string]NetNSState    `json:"netns"`     // by HostNS, path of a bind mount, or net:[inode]
	Functions map[string]FunctionState `json:"functions"` // network functions: PCI by address, sub-functions by name
	Uverbs    map[string]string        `json:"uverbs"`    // "uverbsN": RDMA device
}

// NetNSState is one network namespace.
type NetNSState struct {
	Links   map[string]LinkState     `json:"links"` // by name
	RDMA    map[string]rdmans.Device `json:"rdma"`  // by name
	Routes  []string                 `json:"routes"`
	Rules   []string                 `json:"rules"`
	Sysctls map[string]string        `json:"sysctls"` // net/ipv[46]/conf/<link>/<key>; nil of Brief
}

// LinkState is one netdev.
type LinkState struct {
	AltNames []string    `json:"altNames"`
	Type     string      `json:"type"`
	Kind     string      `json:"kind"`
	MAC      string      `json:"mac"`
	MTU      int         `json:"mtu"`
	Up       bool        `json:"up"`
	Master   string      `json:"master"` // name; empty: none
	Lower    string      `json:"lower"`  // name of the netdev below; empty: none here
	Parent   bus.ID      `json:"parent"`
	Addrs    []string    `json:"addrs"` // address, scope, whether it has a lifetime
	VFs      []link.VF   `json:"vfs"`
	Traits   link.Traits `json:"traits"`
}

// FunctionState is one function.
type FunctionState struct {
	Driver string   `json:"driver"`
	PF     pci.Addr `json:"pf"`
	NumVFs int      `json:"numVFs"`
}

// Snapshot reads the whole machine: the host's namespace and every other that can be seen.
func (k *Kernel) Snapshot(ctx context.Context) (Snapshot, error) { return k.snapshot(ctx, true) }

// Brief is Snapshot without the sysctls, a thousand files that take longer to read than all the rest.
func (k *Kernel) Brief(ctx context.Context) (Snapshot, error) { return k.snapshot(ctx, false) }

func (k *Kernel) snapshot(ctx context.Context, sysctls bool) (Snapshot, error) {
	s, err := k.Open(ctx, "")
	if err != nil {
		return Snapshot{}, err
	}
	snap, err := s.snapshot(ctx, sysctls)
	return snap, errors.Join(err, s.Close())
}

func (s *Session) snapshot(ctx context.Context, sysctls bool) (Snapshot, error) {
	snap := Snapshot{NetNS: map[string]NetNSState{}, Functions: map[string]FunctionState{}, Uverbs: map[string]string{}}
	mode, err := s.host.rdma.Mode()
	if err != nil && !errors.Is(err, rdmans.ErrNoRDMA) {
		return Snapshot{}, err
	}
	snap.Mode = string(mode)
	functions, err := s.functions()
	if err != nil {
		return Snapshot{}, err
	}
	pfs := map[bus.ID]bool{}
	for _, fn := range functions {
		snap.Functions[fn.ID().String()] = FunctionState{Driver: fn.Driver, PF: fn.PF, NumVFs: fn.NumVFs}
		pfs[fn.ID()] = fn.NumVFs > 0
	}
	uverbs, err := s.sys.Uverbs()
	if err != nil {
		return Snapshot{}, err
	}
	for _, u := range uverbs {
		snap.Uverbs["uverbs"+strconv.Itoa(u.Number)] = u.Device
	}
	scan := rdmans.Scan{Proc: s.kernel.Proc, Run: s.kernel.RunNetns}
	err = s.everywhere(ctx, scan, func(p *place, w Where) error {
		state, stateErr := s.state(p, pfs, sysctls)
		snap.NetNS[w.NetNS] = state
		return stateErr
	})
	return snap, err
}

// state reads one namespace.
func (s *Session) state(p *place, pfs map[bus.ID]bool, sysctls bool) (NetNSState, error) {
	out := NetNSState{Links: map[string]LinkState{}, RDMA: map[string]rdmans.Device{}}
	links, err := p.links.List()
	if err != nil {
		return out, err
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Index] = l.Name
	}
	for _, l := range links {
		if out.Links[l.Name], err = linkState(p.links, l, names, pfs[l.Parent]); err != nil && !errors.Is(err, link.ErrNotFound) {
			return out, err
		}
	}
	name := func(index int) string { return names[index] }
	if out.Routes, err = p.links.RouteLines(name); err != nil {
		return out, err
	}
	if out.Rules, err = p.links.RuleLines(); err != nil {
		return out, err
	}
	if sysctls {
		if out.Sysctls, err = p.links.Sysctls(); err != nil {
			return out, err
		}
	}
	devices, err := s.ownRDMA(p)
	for _, d := range devices {
		out.RDMA[d.Name] = d
	}
	return out, err
}

func linkState(c *link.Conn, l link.Link, names map[int]string, pf bool) (LinkState, error) {
	out := LinkState{
		AltNames: l.AltNames, Type: l.Type, Kind: l.Kind, MAC: l.MAC, MTU: l.MTU, Up: l.Up, Master: names[l.Master],
		Lower: names[l.Lower], Parent: l.Parent, Traits: l.Traits,
	}
	addrs, err := c.Addrs(l.Index)
	if err != nil {
		return out, err
	}
	for _, a := range addrs {
		out.Addrs = append(out.Addrs, fmt.Sprintf("%s scope %d dynamic %t", a.Prefix, a.Scope, a.Dynamic))
	}
	if pf {
		out.VFs, err = c.VFs(l.Index)
	}
	return out, err
}

// Lines gives the snapshot as sorted lines "path = value", one for every value in it.
func (s Snapshot) Lines() []string {
	text, err := json.Marshal(s)
	if err != nil {
		return []string{err.Error()} // maps of strings and numbers: it cannot happen
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return []string{err.Error()}
	}
	lines := flatten("", tree, nil)
	slices.Sort(lines)
	return lines
}

// String gives Lines as one text.
func (s Snapshot) String() string { return strings.Join(s.Lines(), "\n") + "\n" }

// flatten walks a JSON value. An empty list or map is a line too, so that it differs from none.
func flatten(path string, v any, lines []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			lines = flatten(path+"."+key, value, lines)
		}
		if len(v) > 0 {
			return lines
		}
	case []any:
		for i, value := range v {
			if _, text := value.(string); text {
				lines = flatten(path+"[]", value, lines) // without a number: one route more must not differ in all after it
				continue
			}
			lines = flatten(path+"["+strconv.Itoa(i)+"]", value, lines)
		}
		if len(v) > 0 {
			return lines
		}
	}
	return append(lines, fmt.Sprintf("%s = %v", strings.TrimPrefix(path, "."), v))
}

// Diff says in lines what differs between two snapshots: "- " what only the first has, "+ " what only the second has. Empty:
// nothing.
func Diff(a, b Snapshot) []string {
	before, after := a.Lines(), b.Lines()
	var out []string
	for _, l := range before {
		if _, found := slices.BinarySearch(after, l); !found {
			out = append(out, "- "+l)
		}
	}
	for _, l := range after {
		if _, found := slices.BinarySearch(before, l); !found {
			out = append(out, "+ "+l)
		}
	}
	slices.SortStableFunc(out, func(x, y string) int { return strings.Compare(x[2:], y[2:]) })
	return out
}
