// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// New is a macvlan or ipvlan that is to be made.
type New struct {
	Kind       string // "macvlan", "ipvlan"
	Mode       string // of a macvlan: "bridge", "private", "vepa", "passthru"; of an ipvlan: "l2"
	Lower      int    // index of the netdev below it, in this namespace
	Name       string // in the target namespace
	MAC        string // empty: the kernel chooses
	MTU        int    // bytes; 0: that of the netdev below
	BCQueueLen int    // of a macvlan; 0: the kernel's default
	NetNS      int    // descriptor of the target namespace
	// Index that it is to have; 0: the kernel chooses. Kernels before 6.15 look a name up in the namespace of the netdev below, and
	// say that it is taken when it is taken there; an index that neither namespace has makes them look for that instead.
	Index int
}

// Add makes a macvlan or ipvlan in another namespace, in one message: it never is in this one, and an error leaves nothing
// behind. ErrNameTaken: in the target namespace. ErrNotFound: no netdev below. ErrBusy: that is a port of a bridge or bond, or has
// links of the other kind on it. ErrRefused: it is InfiniBand, its MTU is smaller, or it is or would be in mode passthru and has
// other links on it. ErrUnsupported: the kernel has no such kind.
func (c *Conn) Add(n New) error {
	what := fmt.Sprintf("add %s %s on link %d", n.Kind, n.Name, n.Lower)
	req := c.request(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(n.Index)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_LINK, nl.Uint32Attr(uint32(n.Lower))))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(n.Name)))
	req.AddData(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(n.NetNS))))
	if n.MTU != 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(n.MTU))))
	}
	if n.MAC != "" {
		hw, err := net.ParseMAC(n.MAC)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		req.AddData(nl.NewRtAttr(unix.IFLA_ADDRESS, hw))
	}
	info, err := n.info()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	req.AddData(info)
	_, err = req.Execute(unix.NETLINK_ROUTE, 0)
	if err == nil {
		return nil
	}
	return c.refusal(what, n, err)
}

// info is IFLA_LINKINFO: the kind and what belongs to it.
func (n New) info() (*nl.RtAttr, error) {
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated(n.Kind))
	own := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	switch {
	case n.Kind == "ipvlan" && n.Mode == "l2":
		own.AddRtAttr(nl.IFLA_IPVLAN_MODE, nl.Uint16Attr(0)) // IPVLAN_MODE_L2
	case n.Kind == "macvlan" && macvlanMode(n.Mode) != 0:
		own.AddRtAttr(nl.IFLA_MACVLAN_MODE, nl.Uint32Attr(macvlanMode(n.Mode)))
		if n.BCQueueLen != 0 {
			own.AddRtAttr(nl.IFLA_MACVLAN_BC_QUEUE_LEN, nl.Uint32Attr(uint32(n.BCQueueLen)))
		}
	default:
		return nil, fmt.Errorf("mode %q: %w", n.Mode, ErrRefused)
	}
	return info, nil
}

// macvlanMode numbers a mode as the kernel does; 0: no such mode.
func macvlanMode(word string) uint32 {
	switch word {
	case "private":
		return nl.MACVLAN_MODE_PRIVATE
	case "vepa":
		return nl.MACVLAN_MODE_VEPA
	case "bridge":
		return nl.MACVLAN_MODE_BRIDGE
	case "passthru":
		return nl.MACVLAN_MODE_PASSTHRU
	}
	return 0
}

// refusal says in words what the kernel says in one errno for several reasons.
func (c *Conn) refusal(what string, n New, err error) error {
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s: %w", what, ErrNameTaken)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%s: the kernel has no links of this kind: %w", what, errors.ErrUnsupported)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s: it is a port of a bridge or bond, or has links of another kind on it: %w", what, ErrBusy)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %s is no MAC that a link can have: %w", what, n.MAC, ErrRefused)
	case !errors.Is(err, unix.EINVAL):
		return translate(what, err)
	}
	l, lookErr := c.ByIndex(n.Lower)
	switch {
	case lookErr != nil:
		return errors.Join(translate(what, err), lookErr)
	case l.Type == "infiniband":
		return fmt.Errorf("%s: an InfiniBand link takes no %s: %w", what, n.Kind, ErrRefused)
	case n.MTU > l.MTU:
		return fmt.Errorf("%s: MTU %d is above the %d of %s: %w", what, n.MTU, l.MTU, l.Name, ErrRefused)
	case n.Mode == "passthru":
		return fmt.Errorf("%s: mode passthru wants %s for itself, and other links are on it: %w", what, l.Name, ErrBusy)
	case n.Kind == "macvlan":
		return fmt.Errorf("%s: another macvlan may have %s for itself (mode passthru): %w: %w", what, l.Name, ErrRefused, err)
	}
	return translate(what, err)
}

// Del removes a netdev of software. ErrNotFound.
func (c *Conn) Del(index int) error {
	return translate(fmt.Sprintf("remove link %d", index), c.h.LinkDel(ref(index)))
}
