// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/podfabric/podfabric/rdmans/pci"
)

// onMaster reads what a macvlan or ipvlan has: the link that it sits on, and how.
func (p *parser) onMaster() error {
	if v := p.root.get("linkInContainer"); v != nil && v.yes {
		return invalid("remove linkInContainer, and name a link of the node as the master: one that is in the pod already has "+
			"no RDMA device below it that podfabric could know", "linkInContainer", v, "false")
	}
	if err := p.master(); err != nil {
		return err
	}
	v := p.said("mode")
	if p.conf.Kind == KindIPVlan {
		return ipvlanMode(v)
	}
	var err error
	p.conf.Macvlan.Mode, err = choice(v, "mode", MacvlanBridge, MacvlanPrivate, MacvlanVEPA, MacvlanPassthru)
	if err != nil {
		return modeOf(KindMacvlan, err)
	}
	if v := p.root.get("bcqueuelen"); v != nil {
		n, err := integer(v, "bcqueuelen", 0, math.MaxUint32)
		if err != nil {
			return err
		}
		p.conf.Macvlan.BCQueueLen = &n
	}
	return nil
}

// ipvlanMode takes l2 alone.
func ipvlanMode(v *value) error {
	if l3 := v.str(); l3 == "l3" || l3 == "l3s" {
		return invalid(`set mode to "l2": that RoCE finds its way from an ipvlan in mode `+l3+" is unproven", "mode", v, `"l2"`)
	}
	if _, err := choice(v, "mode", "l2"); err != nil {
		return modeOf(KindIPVlan, err)
	}
	return nil
}

// modeOf says whose mode it is: the key is that of two kinds.
func modeOf(kind Kind, err error) error {
	var p *Problem
	if !errors.As(err, &p) {
		return err
	}
	q := *p
	q.Remedy += fmt.Sprintf(" for \"link\": %q", kind)
	return &q
}

// master reads which link to sit on. What a rail is says node.json.
func (p *parser) master() error {
	v := p.said("master")
	const right = `a name as "ens1f0np0", {"rail": 0}, {"pci": "0000:3b:00.0"}, {"rdma": "mlx5_0"} or {"pfNames": ["ens1f*"]}`
	if v == nil {
		return invalid(`add "master" to the network: podfabric takes no link by itself, least of all the one with the default route`,
			"master", nil, right)
	}
	if v.shape == shapeString {
		name, err := linkName(v, "master")
		p.conf.Master = Selector{Key: "master", Name: name}
		return err
	}
	var given []string
	for _, name := range []string{"rail", "pci", "rdma", "pfNames"} {
		if v.get(name) != nil {
			given = append(given, name)
		}
	}
	switch len(given) {
	case 0:
		return invalid(`say in "master" which link it is`, "master", v, right)
	case 1:
	default:
		return &Problem{
			Code: CodeInvalid, Remedy: fmt.Sprintf("keep %q or %q in master: one of them finds the link", given[0], given[1]),
			Field: "master." + given[1], Found: strings.Join(given, " and "), Right: right,
		}
	}
	return p.selector(given[0], v.get(given[0]))
}

// selector reads the one key of the object "master".
func (p *parser) selector(name string, v *value) error {
	s := Selector{Key: "master." + name}
	var err error
	switch name {
	case "rail":
		s.PCI, err = p.railPF(v, s.Key)
	case "pci":
		if s.PCI, err = pci.Parse(v.str()); err != nil || s.PCI.IsZero() {
			err = invalid("write master.pci as the PF's full PCI address", s.Key, v, `an address as "0000:3b:00.0"`)
		}
	case "rdma":
		// IB_DEVICE_NAME_MAX of the kernel is 64, the zero byte included (include/uapi/rdma/rdma_netlink.h).
		if s.RDMA = v.str(); !plain(s.RDMA, "_-.") || !pathSafe(s.RDMA) || len(s.RDMA) > 63 {
			err = invalid("write master.rdma as the name of an RDMA device", s.Key, v, `a name as "mlx5_0"`)
		}
	case "pfNames":
		s.PFNames, err = patterns(v, s.Key)
	}
	p.conf.Master = s
	return err
}

// railPF is the PF of a rail.
func (p *parser) railPF(v *value, field string) (pci.Addr, error) {
	n, err := integer(v, field, 0, maxRail)
	if err != nil {
		return pci.Addr{}, err
	}
	if p.conf.Rail != nil && *p.conf.Rail != n {
		return pci.Addr{}, invalid("give rail and master.rail the same number: the master makes the rail", field, v,
			"as rail, "+strconv.Itoa(*p.conf.Rail))
	}
	rail, known := p.node.Rails[n]
	if !rail.PCI.IsZero() {
		return rail.PCI, nil
	}
	found := fmt.Sprintf("a node without rail %d", n)
	if known {
		found = fmt.Sprintf("rail %d without pci", n)
	}
	return pci.Addr{}, &Problem{
		Code: CodeUnavailable,
		Remedy: fmt.Sprintf(`write the PF of the rail into %s, as {"version": 1, "rails": {"%d": {"pci": "0000:3b:00.0"}}}`,
			NodePath, n),
		Field: field, Found: found,
	}
}

// patterns reads the globs of pfNames.
func patterns(v *value, field string) ([]string, error) {
	list, err := texts(v, field)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, invalid("name a PF in "+field, field, v, `patterns as ["ens1f*"]`)
	}
	for i, pattern := range list {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" || len(pattern) > maxAltName || !printable(pattern) {
			return nil, invalid("write "+item(field, i)+" as a pattern of interface names", item(field, i), v.items[i],
				`* for any letters, ? for one, [a-c] for one of some, each [ closed`)
		}
	}
	return list, nil
}

// maxAltName is ALTIFNAMSIZ-1 of the kernel (include/uapi/linux/if.h).
const maxAltName = 127

// linkName reads the name of a link of the node, or another name of it.
func linkName(v *value, field string) (string, error) {
	name := v.str()
	if !pathSafe(name) || name == "" || len(name) > maxAltName || strings.ContainsAny(name, ": ") || !printable(name) {
		return "", invalid("write "+field+" as the name of a link of the node", field, v, `a name as "ens1f0np0"`)
	}
	return name, nil
}

// printable tells whether a terminal shows all of s.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
