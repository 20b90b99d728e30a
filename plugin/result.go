// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// resultOf is the CNI result, of version 1.1; skel's caller gets it in the version of its configuration. Link values are
// those read back, not those asked for.
func resultOf(c netconf.Conf, rec record.Record, a attach.Addresses, dns types.DNS, f attach.Facts) *types100.Result {
	iface := &types100.Interface{Name: c.Request.IfName, Sandbox: rec.NetNS.Path}
	switch {
	case f.Link != nil:
		iface.Mac, iface.Mtu = f.Link.MAC, f.Link.MTU
	case f.VF != nil:
		iface.Mac = f.VF.MAC // a VF that a program of the pod drives has no netdev
	}
	if pci := rec.Device.PCI; !pci.IsZero() {
		iface.PciID = pci.String()
	}
	if c.Previous != nil {
		return enriched(c.Previous, iface)
	}
	r := &types100.Result{CNIVersion: types100.ImplementedSpecVersion, Interfaces: []*types100.Interface{iface}, DNS: dns}
	for _, addr := range a.Addrs {
		ip := &types100.IPConfig{Interface: new(0), Address: ipNet(addr.Prefix)}
		if addr.Gateway.IsValid() {
			ip.Gateway = addr.Gateway.AsSlice()
		}
		r.IPs = append(r.IPs, ip)
	}
	for _, route := range a.Routes {
		out := &types.Route{Dst: ipNet(route.Dst)}
		if route.Via.IsValid() {
			out.GW = route.Via.AsSlice()
		}
		r.Routes = append(r.Routes, out)
	}
	return r
}

// enriched passes on the result of the plugin before, with what it left unsaid of our interface. Everything else is as it came:
// a plugin behind us, as sbr, works on it.
func enriched(previous *types100.Result, seen *types100.Interface) *types100.Result {
	r := *previous
	r.CNIVersion = types100.ImplementedSpecVersion
	r.Interfaces = nil
	for _, i := range previous.Interfaces {
		if i.Name == seen.Name && i.Sandbox != "" {
			same := *i
			i = &same
			fill(&i.Mac, seen.Mac)
			fill(&i.PciID, seen.PciID)
			if i.Mtu == 0 {
				i.Mtu = seen.Mtu
			}
		}
		r.Interfaces = append(r.Interfaces, i)
	}
	return &r
}

func fill(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// previous are the addresses that the plugin before gave our interface. One that names no interface is ours when there is no
// other interface in the pod that it could be.
func previous(c netconf.Conf) attach.Addresses {
	var out attach.Addresses
	inside := 0
	for _, i := range c.Previous.Interfaces {
		if i.Sandbox != "" {
			inside++
		}
	}
	for _, ip := range c.Previous.IPs {
		ours := ip.Interface == nil && inside == 1
		if n := ip.Interface; n != nil && *n >= 0 && *n < len(c.Previous.Interfaces) {
			i := c.Previous.Interfaces[*n]
			ours = i.Name == c.Request.IfName && i.Sandbox != "" // the node may have a link of that name too
		}
		addr, ok := netip.AddrFromSlice(ip.Address.IP)
		if bits, _ := ip.Address.Mask.Size(); ours && ok {
			out.Addrs = append(out.Addrs, netconf.Address{Prefix: netip.PrefixFrom(addr.Unmap(), bits)})
		}
	}
	return out
}

// ipNet is the form that the CNI library wants; netip is used everywhere else.
func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
