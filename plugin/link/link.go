// SPDX-License-Identifier: Apache-2.0

package link

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/rdmans/bus"
)

// Link is a netdev.
type Link struct {
	Index    int
	Name     string
	AltNames []string
	Type     string // "ether", "infiniband", "loopback"
	Kind     string // "macvlan", "bridge", "veth"; "device" for hardware
	MAC      string // aa:bb:cc:dd:ee:ff
	MTU      int    // bytes
	Up       bool   // administratively
	Carrier  bool   // the kernel's word for running
	Master   int    // index of the bridge, bond or team it is a port of; 0: none
	Lower    int    // index of the netdev below it in this namespace; 0: none, or one in another namespace
	Far      Far    // the netdev below it, or the other end of a veth, where that is in another namespace; zero: none
	Traits   Traits
	// Parent is the function it belongs to; zero: none, or a kernel before 5.14, which does not say.
	Parent bus.ID
}

// Far is a netdev of another namespace, as the kernel names it to this one.
type Far struct {
	Index int // in its namespace; 0: there is no such netdev
	NSID  int // this namespace's number for that namespace (NSID)
}

// skipStats is RTEXT_FILTER_SKIP_STATS of include/uapi/linux/rtnetlink.h.
const skipStats = 1 << 3

// List gives all netdevs of the namespace by index.
func (c *Conn) List() ([]Link, error) {
	return dump(func() ([]Link, error) {
		req := c.request(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		// Statistics are most of the answer and nobody reads them. VF lists are not asked for: drivers take their time.
		req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(skipStats)))
		msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
		if err != nil {
			return nil, translate("list links", err)
		}
		links := make([]Link, 0, len(msgs))
		for _, m := range msgs {
			l, err := netlink.LinkDeserialize(nil, m)
			if err != nil {
				return nil, fmt.Errorf("list links: %w", err)
			}
			out := convert(l)
			if out.Traits, err = traitsOf(l.Attrs(), m); err != nil {
				return nil, fmt.Errorf("list links: %w", err)
			}
			links = append(links, out)
		}
		slices.SortFunc(links, func(a, b Link) int { return cmp.Compare(a.Index, b.Index) })
		return links, nil
	})
}

func convert(l netlink.Link) Link {
	a := l.Attrs()
	out := Link{
		Index: a.Index, Name: a.Name, AltNames: a.AltNames, Type: a.EncapType, Kind: l.Type(), MAC: a.HardwareAddr.String(),
		MTU: a.MTU, Up: a.Flags&net.FlagUp != 0, Carrier: a.RawFlags&unix.IFF_LOWER_UP != 0, Master: a.MasterIndex,
	}
	if a.NetNsID < 0 {
		out.Lower = a.ParentIndex
	} else if a.ParentIndex != 0 {
		out.Far = Far{Index: a.ParentIndex, NSID: a.NetNsID}
	}
	if a.ParentDevBus == "pci" || a.ParentDevBus == "auxiliary" {
		// A name on either bus that is of neither form belongs to no function that anybody can ask for.
		if parent, err := bus.Parse(a.ParentDev); err == nil {
			out.Parent = parent
		}
	}
	return out
}

// ByName finds a netdev, or gives ErrNotFound.
func (c *Conn) ByName(name string) (Link, error) {
	links, err := c.List()
	if err != nil {
		return Link{}, err
	}
	for _, l := range links {
		if l.Name == name {
			return l, nil
		}
	}
	return Link{}, fmt.Errorf("link %s: %w", name, ErrNotFound)
}

// ByIndex finds a netdev, or gives ErrNotFound.
func (c *Conn) ByIndex(index int) (Link, error) {
	links, err := c.List()
	if err != nil {
		return Link{}, err
	}
	for _, l := range links {
		if l.Index == index {
			return l, nil
		}
	}
	return Link{}, fmt.Errorf("link %d: %w", index, ErrNotFound)
}

// NSID gives this namespace's number for another; -1: it has none, and no netdev here has one there below it.
func (c *Conn) NSID(fd int) (int, error) {
	id, err := c.h.GetNetNsIdByFd(fd)
	return id, translate("look up the number of a network namespace", err)
}

// Of picks, of the netdevs of a namespace, those of a function: by what the kernel says of their parent, and by the names
// that the namespace's own sysfs has for the function, for kernels that do not say.
func Of(links []Link, id bus.ID, names []string) []Link {
	var own []Link
	for _, l := range links {
		if l.Parent == id || l.Parent.IsZero() && slices.Contains(names, l.Name) {
			own = append(own, l)
		}
	}
	return own
}

// Change says what Move is to do beside moving. Zero values leave things as they are.
type Change struct {
	Name  string
	MTU   int // bytes
	NetNS int // descriptor of the target namespace; -1: the link stays
}

// Move moves a netdev to another namespace, renames it and sets its MTU, in one message. A move leaves the netdev down,
// without addresses and with another index. It is not atomic: when the name is taken (ErrNameTaken) or the MTU refused
// (ErrRefused), the netdev is already in the target namespace, under its old name.
func (c *Conn) Move(index int, ch Change) error {
	req := c.request(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	if ch.NetNS >= 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_NET_NS_FD, nl.Uint32Attr(uint32(ch.NetNS))))
	}
	if ch.Name != "" {
		req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(ch.Name)))
	}
	if ch.MTU != 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(ch.MTU))))
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	what := fmt.Sprintf("change link %d", index)
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s: %w: %s", what, ErrNameTaken, ch.Name)
	}
	if err != nil && ch.MTU != 0 && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ERANGE)) {
		return fmt.Errorf("%s: %w (MTU %d): %w", what, ErrRefused, ch.MTU, err)
	}
	return translate(what, err)
}

// SetUp sets the administrative state.
func (c *Conn) SetUp(index int, up bool) error {
	set := c.h.LinkSetDown
	if up {
		set = c.h.LinkSetUp
	}
	return translate(fmt.Sprintf("set the state of link %d", index), set(ref(index)))
}

// SetMAC sets the effective hardware address.
func (c *Conn) SetMAC(index int, mac string) error {
	what := fmt.Sprintf("set the MAC of link %d", index)
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return translate(what, c.h.LinkSetHardwareAddr(ref(index), hw))
}

// SetAltName gives a netdev an alternative name or takes it away.
func (c *Conn) SetAltName(index int, name string, on bool) error {
	set := c.h.LinkDelAltName
	if on {
		set = c.h.LinkAddAltName
	}
	return translate(fmt.Sprintf("set the alternative names of link %d", index), set(ref(index), name))
}

// ref names a netdev by its index for the library.
func ref(index int) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

// sysctlPath keeps a key inside /proc/sys/net.
func sysctlPath(key string) (string, error) {
	if !strings.HasPrefix(key, "net/") || strings.Contains(key, "..") {
		return "", fmt.Errorf("sysctl %s: %w", key, ErrNotFound)
	}
	return "/proc/sys/" + key, nil
}
