// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Traits are what a netdev takes along when it changes its namespace and whoever has CAP_NET_ADMIN there may change, beside its
// MAC, MTU and names. All of it can be set in one RTM_NEWLINK (do_setlink in net/core/rtnetlink.c).
type Traits struct {
	// Flags are the IFF_* that a user may set, but up: words as "multicast promisc", sorted, one space between. That a program or the
	// kernel itself needs the netdev promiscuous does not show here.
	Flags     string
	Alias     string
	Group     uint32
	TxQueue   uint32 // length, in packets
	LinkMode  string // "default", "dormant": stays dormant until a user says otherwise
	Broadcast string // hardware address; of Ethernet only, since IPoIB makes its own from the partition
	// What the stack puts together of packets, in bytes and segments; 0: the kernel is too old to say.
	GSO, GSOSegs, GRO, GSOIPv4, GROIPv4 uint32
	// XDP says how a program sees what the netdev receives, before everybody else: "native", "generic", "offloaded", "several";
	// empty: none does.
	XDP string
}

// flagWords are the flags that __dev_change_flags takes from a user, by name.
func flagWords() map[string]uint32 {
	return map[string]uint32{
		"allmulti": unix.IFF_ALLMULTI, "automedia": unix.IFF_AUTOMEDIA, "debug": unix.IFF_DEBUG, "dynamic": unix.IFF_DYNAMIC,
		"multicast": unix.IFF_MULTICAST, "noarp": unix.IFF_NOARP, "notrailers": unix.IFF_NOTRAILERS, "portsel": unix.IFF_PORTSEL,
		"promisc": unix.IFF_PROMISC,
	}
}

// linkModes are IF_LINK_MODE_* by number.
func linkModes() []string { return []string{"default", "dormant"} }

// xdpModes are the words of Traits.XDP by XDP_ATTACHED_*.
func xdpModes() []string { return []string{"", "native", "generic", "offloaded", "several"} }

// traitsOf reads the traits out of an answer of the kernel, of which a knows a part.
func traitsOf(a *netlink.LinkAttrs, msg []byte) (Traits, error) {
	t := Traits{
		// The alias is any 255 bytes, and it goes into records and logs.
		Alias: strings.ToValidUTF8(a.Alias, "\uFFFD"), Group: a.Group, TxQueue: uint32(a.TxQLen),
		GSO: a.GSOMaxSize, GSOSegs: a.GSOMaxSegs, GRO: a.GROMaxSize, GSOIPv4: a.GSOIPv4MaxSize, GROIPv4: a.GROIPv4MaxSize,
	}
	var set []string
	for word, bit := range flagWords() {
		if a.RawFlags&bit != 0 {
			set = append(set, word)
		}
	}
	slices.Sort(set)
	t.Flags = strings.Join(set, " ")
	if a.Xdp != nil {
		t.XDP = word(xdpModes(), a.Xdp.AttachMode)
	}
	attrs, err := nl.ParseRouteAttr(msg[unix.SizeofIfInfomsg:])
	if err != nil {
		return Traits{}, fmt.Errorf("read the attributes of link %s: %w", a.Name, err)
	}
	for _, attr := range attrs {
		switch attr.Attr.Type {
		case unix.IFLA_LINKMODE:
			if len(attr.Value) > 0 {
				t.LinkMode = word(linkModes(), uint32(attr.Value[0]))
			}
		case unix.IFLA_BROADCAST:
			if a.EncapType == "ether" {
				t.Broadcast = net.HardwareAddr(attr.Value).String()
			}
		}
	}
	return t, nil
}

// word names a number; one that is newer than this program is shown as it is.
func word(words []string, n uint32) string {
	if n < uint32(len(words)) {
		return words[n]
	}
	return fmt.Sprint(n)
}

// SetTraits changes those traits of a netdev that differ, in one message; from are those that it has now. An XDP program can be taken
// away but not given, and so is left alone when to names one. ErrNotFound; ErrRefused: the driver or the kernel will not have it. An
// XDP program that a BPF link holds is refused when all else is done already.
func (c *Conn) SetTraits(index int, from, to Traits) error {
	what := fmt.Sprintf("set traits of link %d", index)
	req := c.request(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	if from.Flags != to.Flags {
		for word, bit := range flagWords() {
			msg.Change |= bit
			if slices.Contains(strings.Fields(to.Flags), word) {
				msg.Flags |= bit
			}
		}
	}
	if from.Alias != to.Alias {
		req.AddData(nl.NewRtAttr(unix.IFLA_IFALIAS, []byte(to.Alias)))
	}
	if from.Group != to.Group {
		req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(to.Group)))
	}
	if from.TxQueue != to.TxQueue {
		req.AddData(nl.NewRtAttr(unix.IFLA_TXQLEN, nl.Uint32Attr(to.TxQueue)))
	}
	if mode := slices.Index(linkModes(), to.LinkMode); from.LinkMode != to.LinkMode && mode >= 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_LINKMODE, []byte{byte(mode)}))
	}
	if from.Broadcast != to.Broadcast && to.Broadcast != "" {
		hw, err := hex.DecodeString(strings.ReplaceAll(to.Broadcast, ":", ""))
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		req.AddData(nl.NewRtAttr(unix.IFLA_BROADCAST, hw))
	}
	addSizes(req, from, to)
	if from.XDP != to.XDP && to.XDP == "" {
		req.AddData(noXDP(from.XDP))
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%s: %w: %w", what, ErrRefused, err)
	}
	return translate(what, err)
}

// addSizes asks for those that differ. To set GSO or GRO may set that of IPv4 too, so that this goes along, and is set after it whatever the
// order of attributes.
func addSizes(req *nl.NetlinkRequest, from, to Traits) {
	for _, size := range []struct {
		attr  int
		to    uint32
		equal bool
	}{
		{unix.IFLA_GSO_MAX_SIZE, to.GSO, from.GSO == to.GSO},
		{unix.IFLA_GSO_MAX_SEGS, to.GSOSegs, from.GSOSegs == to.GSOSegs},
		{unix.IFLA_GRO_MAX_SIZE, to.GRO, from.GRO == to.GRO},
		{unix.IFLA_GSO_IPV4_MAX_SIZE, to.GSOIPv4, from.GSO == to.GSO && from.GSOIPv4 == to.GSOIPv4},
		{unix.IFLA_GRO_IPV4_MAX_SIZE, to.GROIPv4, from.GRO == to.GRO && from.GROIPv4 == to.GROIPv4},
	} {
		if size.to != 0 && !size.equal {
			req.AddData(nl.NewRtAttr(size.attr, nl.Uint32Attr(size.to)))
		}
	}
}

// noXDP takes a program away, which the kernel wants to be told how it was attached.
func noXDP(mode string) *nl.RtAttr {
	flags := map[string]uint32{"native": unix.XDP_FLAGS_DRV_MODE, "generic": unix.XDP_FLAGS_SKB_MODE, "offloaded": unix.XDP_FLAGS_HW_MODE}
	xdp := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
	xdp.AddRtAttr(nl.IFLA_XDP_FD, nl.Uint32Attr(^uint32(0)))
	xdp.AddRtAttr(nl.IFLA_XDP_FLAGS, nl.Uint32Attr(flags[mode]))
	return xdp
}
