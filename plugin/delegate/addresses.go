// SPDX-License-Identifier: Apache-2.0

package delegate

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/netconf"
)

// More than these no interface needs; each is a call of the kernel, of which an ADD has only so many in its time.
const (
	addressesMax = 32
	routesMax    = 1000
)

// Addresses gives the addresses and routes of a result as values. The error wraps ErrOutput when one of them is none.
func Addresses(r *types100.Result) ([]netconf.Address, []netconf.Route, error) {
	if len(r.IPs) > addressesMax || len(r.Routes) > routesMax {
		return nil, nil, fmt.Errorf("read %d addresses and %d routes, of which at most %d and %d are taken: %w",
			len(r.IPs), len(r.Routes), addressesMax, routesMax, ErrOutput)
	}
	addrs := make([]netconf.Address, 0, len(r.IPs))
	for i, ip := range r.IPs {
		if ip == nil {
			return nil, nil, fmt.Errorf("read ips[%d]: it is null: %w", i, ErrOutput)
		}
		p, ok := prefix(ip.Address)
		if !ok || !netconf.Usable(p.Addr()) {
			return nil, nil, fmt.Errorf("read ips[%d]: %q is no address of an interface: %w", i, ip.Address.String(), ErrOutput)
		}
		if slices.ContainsFunc(addrs, func(a netconf.Address) bool { return a.Prefix.Addr() == p.Addr() }) {
			return nil, nil, fmt.Errorf("read ips[%d]: %s is given twice: %w", i, p.Addr(), ErrOutput)
		}
		addrs = append(addrs, netconf.Address{Prefix: p, Gateway: addr(ip.Gateway)})
	}
	routes := make([]netconf.Route, 0, len(r.Routes))
	for i, route := range r.Routes {
		if route == nil {
			return nil, nil, fmt.Errorf("read routes[%d]: it is null: %w", i, ErrOutput)
		}
		p, ok := prefix(route.Dst)
		if !ok {
			return nil, nil, fmt.Errorf("read routes[%d]: %q is no destination: %w", i, route.Dst.String(), ErrOutput)
		}
		routes = append(routes, netconf.Route{Dst: p.Masked(), Via: addr(route.GW)})
	}
	return addrs, routes, nil
}

// prefix converts package net's two forms of an IPv4 address to the one that netip compares.
func prefix(n net.IPNet) (netip.Prefix, bool) {
	ones, bits := n.Mask.Size()
	a := addr(n.IP)
	if !a.IsValid() || bits == 0 {
		return netip.Prefix{}, false
	}
	p := netip.PrefixFrom(a, ones-bits+a.BitLen())
	return p, p.IsValid()
}

func addr(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
