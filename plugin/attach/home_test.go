// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func TestHomed(t *testing.T) {
	t.Parallel()
	facts := func(link, rdma string, index uint32, guid string) attach.Facts {
		f := attach.Facts{
			Function: attach.Function{ID: bus.PCI(pci.Addr{Bus: 1, Device: 16})},
			Link:     &attach.Link{Place: attach.Place{NS: attach.Host, Name: link}},
		}
		if rdma != "" {
			f.RDMA = &attach.RDMA{Name: rdma, Index: index, NodeGUID: guid, NS: attach.Host}
		}
		return f
	}
	home := facts("ens1f0v2", "mlx5_4", 7, "a")
	// Names as the kernel gives them: lab facts 4 and 5, review.md lab 9.
	for _, test := range []struct {
		name       string
		seen       attach.Facts
		home       attach.Facts
		link, rdma string
	}{
		{"as it was", home, home, "ens1f0v2", "mlx5_4"},
		{"under the pod's name", facts("net1", "mlx5_4", 7, "a"), home, "ens1f0v2", "mlx5_4"},
		{"under the kernel's name", facts("dev5", "ibdev7", 7, "a"), home, "ens1f0v2", "mlx5_4"},
		{"another index's name", facts("dev5", "ibdev8", 7, "a"), home, "ens1f0v2", "ibdev8"},
		{"a name that somebody chose", facts("rail0", "rocep1s0", 7, "a"), home, "rail0", "rocep1s0"},
		{"a name that only begins so", facts("network0", "mlx5_4", 7, "a"), home, "network0", "mlx5_4"},
		{"another device at the address", facts("net1", "ibdev9", 9, "b"), home, "net1", "ibdev9"},
		{"another GUID", facts("net1", "mlx5_4", 7, "b"), home, "net1", "mlx5_4"},
		{"no RDMA device, ever", facts("net1", "", 0, ""), facts("ens1f0v2", "", 0, ""), "ens1f0v2", ""},
		{"its RDMA device is new", facts("net1", "mlx5_4", 7, "a"), facts("ens1f0v2", "", 0, ""), "net1", "mlx5_4"},
		{"nothing kept", facts("net1", "mlx5_4", 7, "a"), attach.Facts{}, "net1", "mlx5_4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			seenLink := test.seen.Link.Name
			got := attach.Homed(test.seen, test.home)
			rdma := ""
			if got.RDMA != nil {
				rdma = got.RDMA.Name
			}
			if got.Link.Name != test.link || rdma != test.rdma {
				t.Errorf("names %s and %s, want %s and %s", got.Link.Name, rdma, test.link, test.rdma)
			}
			if test.seen.Link.Name != seenLink {
				t.Error("the facts that were given changed")
			}
		})
	}
}
