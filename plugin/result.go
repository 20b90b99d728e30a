// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
)

// resultOf is the CNI result, of version 1.1; skel's caller gets it in the version of its configuration. Link values are
// those read back, not those asked for.
func resultOf(c netconf.Conf, a attach.Addresses, dns types.DNS, f attach.Facts, ns attach.NetNS) *types100.Result {
	iface := &types100.Interface{Name: c.Request.IfName, Sandbox: ns.Path, PciID: c.Device.String()}
	if f.Link != nil {
		iface.Mac, iface.Mtu = f.Link.MAC, f.Link.MTU
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

// ipNet is the form that the CNI library wants; netip is used everywhere else.
func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
