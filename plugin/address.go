// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/ipam"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
)

// addresses gets what the pod's interface is to have. It runs without a lock, since a delegate may take its time; DEL may
// come meanwhile, which relock finds.
func (a *adding) addresses(ctx context.Context) (attach.Addresses, types.DNS, error) {
	c := a.conf.IPAM
	out := attach.Addresses{Routes: c.Routes}
	dns := c.DNS
	switch c.Kind {
	case netconf.IPAMNone:
		if a.conf.Previous != nil {
			out = previous(a.conf)
		}
	case netconf.IPAMStatic:
		out.Addrs = c.Static
	case netconf.IPAMRange:
		given, err := a.lease(ctx)
		if err != nil {
			return attach.Addresses{}, dns, err
		}
		out.Addrs = given
	case netconf.IPAMDelegate:
		result, err := a.Delegate.Add(ctx, call(a.rec))
		if err != nil {
			return attach.Addresses{}, dns, fmt.Errorf("get addresses from %s: %w", c.Plugin, err)
		}
		if out, err = delegated(result); err != nil {
			return attach.Addresses{}, dns, fmt.Errorf("get addresses from %s: %w", c.Plugin, err)
		}
		dns = result.DNS
	}
	out.Routes = gateways(out)
	return out, dns, a.permitted(out)
}

func (a *adding) lease(ctx context.Context) ([]netconf.Address, error) {
	given, err := a.Leases.Allocate(ctx, pools(a.conf.IPAM.Ranges), a.rec.Owner.String(), a.conf.IPAM.Want)
	if err != nil {
		return nil, leaseProblem(err)
	}
	for _, w := range given.Warnings {
		a.log.WarnContext(ctx, w)
	}
	out := make([]netconf.Address, 0, len(given.Addrs))
	for _, g := range given.Addrs {
		out = append(out, netconf.Address{Prefix: g.Prefix, Gateway: g.Gateway})
	}
	return out, nil
}

func pools(sets [][]netconf.Range) [][]ipam.Range {
	out := make([][]ipam.Range, len(sets))
	for i, set := range sets {
		for _, r := range set {
			out[i] = append(out[i], ipam.Range{Subnet: r.Subnet, First: r.First, Last: r.Last, Gateway: r.Gateway, Exclude: r.Exclude})
		}
	}
	return out
}

// leaseProblem adds a remedy and a code to what the lease store says.
func leaseProblem(err error) error {
	if full := (*ipam.ExhaustedError)(nil); errors.As(err, &full) {
		return &netconf.Problem{
			Code: netconf.CodeExhausted, Remedy: "delete pods that hold addresses of this range, or make the range larger",
			Field: "ipam.ranges", Err: err,
		}
	}
	if taken := (*ipam.TakenError)(nil); errors.As(err, &taken) {
		return &netconf.Problem{
			Code: netconf.CodeInvalid, Remedy: "ask for another address, or delete the pod that has it", Field: "runtimeConfig.ips", Err: err,
		}
	}
	return fmt.Errorf("lease an address: %w", err)
}

// delegated reads the result of another IPAM plugin.
func delegated(r *types100.Result) (attach.Addresses, error) {
	addrs, routes, err := delegate.Addresses(r)
	if err == nil && len(addrs) == 0 {
		err = delegate.ErrNoIPs
	}
	return attach.Addresses{Addrs: addrs, Routes: routes}, err
}

// gateways gives each route without a gateway the first gateway of its family, as every CNI plugin does. A route to a subnet
// that an address is in stays on the link.
func gateways(a attach.Addresses) []netconf.Route {
	out := make([]netconf.Route, 0, len(a.Routes))
	for _, route := range a.Routes {
		for _, addr := range a.Addrs {
			same := addr.Gateway.IsValid() && addr.Gateway.Is4() == route.Dst.Addr().Is4()
			if !route.Via.IsValid() && same && route.Dst != addr.Prefix.Masked() {
				route.Via = addr.Gateway
			}
		}
		out = append(out, route)
	}
	return out
}

// permitted holds what came from elsewhere against the node's own rules.
func (a *adding) permitted(addrs attach.Addresses) error {
	for i, addr := range addrs.Addrs {
		if !a.node.AllowsSubnet(addr.Prefix.Masked()) {
			return &netconf.Problem{
				Code:   netconf.CodeInvalid,
				Remedy: "use addresses that allow.subnets of " + netconf.NodePath + " lists, or add the subnet there",
				Field:  "address " + strconv.Itoa(i), Found: addr.Prefix.String(),
			}
		}
	}
	for _, route := range addrs.Routes {
		if route.Dst.Bits() == 0 && !a.conf.IPAM.DefaultRoute {
			return &netconf.Problem{
				Code:   netconf.CodeInvalid,
				Remedy: "take the default route out of the address management of this network, or set ipam.defaultRoute to true",
				Field:  "ipam.routes", Found: route.Dst.String() + ", which would take the pod's traffic away from its own network",
			}
		}
	}
	return nil
}
