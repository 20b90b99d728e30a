// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
)

// RoCE types as /sys/class/infiniband/<dev>/ports/<port>/gid_attrs/types/<index> words them.
const (
	RoCEv1 = "IB/RoCE v1"
	RoCEv2 = "RoCE v2"
)

// Names of the variables that the scan reads or that a hint may set.
const (
	VarHCA        = "NCCL_IB_HCA"
	VarGIDIndex   = "NCCL_IB_GID_INDEX"
	VarAddrFamily = "NCCL_IB_ADDR_FAMILY"
	VarAddrRange  = "NCCL_IB_ADDR_RANGE"
	VarRoCE       = "NCCL_IB_ROCE_VERSION_NUM"
	VarNet        = "NCCL_NET"
	VarTC         = "NCCL_IB_TC"
	VarMergeLevel = "NCCL_NET_MERGE_LEVEL"
	VarMergeNICs  = "NCCL_IB_MERGE_NICS"
)

// GID is one slot of a port's GID table as a process in the pod sees it.
type GID struct {
	Index int
	Addr  netip.Addr // ::ffff:a.b.c.d or a.b.c.d for IPv4; zero for an empty slot
	Type  string     // RoCEv1, RoCEv2; empty when reading it gives EINVAL
}

// Table is the GID table of one RoCE port. Slots that are not in List are empty.
type Table struct {
	List []GID
	Size int // slots in all, gid_tbl_len; when it is too small for List, List decides
}

// maxTable bounds the slots that are looked at. gid_tbl_len is below 1024 on every device seen.
const maxTable = 1 << 14

func (t Table) size() int {
	n := t.Size
	for _, g := range t.List {
		n = max(n, g.Index+1)
	}
	return min(n, maxTable)
}

// slot is what NCCL sees of one index.
type slot struct {
	raw   [16]byte // ibv_query_gid; all zero: empty
	six   bool     // getGidAddrFamily
	valid bool     // validGid
	text  string   // of the type; empty: EINVAL
}

// slots gives every slot in order.
func (t Table) slots() []slot {
	slots := make([]slot, t.size())
	for i := range slots {
		slots[i].six = true // as zero is no IPv4 address
	}
	for _, g := range t.List {
		if g.Index >= 0 && g.Index < len(slots) {
			raw := g.Addr.As16()
			slots[g.Index] = slot{raw: raw, six: isSix(raw), valid: valid(raw), text: g.Type}
		}
	}
	return slots
}

// Kind is how a scan ends.
type Kind string

// The ends of a scan.
const (
	OK        Kind = "ok"        // NCCL uses the entry at Index
	Abort     Kind = "abort"     // the connection, or the process, ends
	Undefined Kind = "undefined" // the outcome hangs on a variable that NCCL never set
)

// Outcome is what NCCL does on one port.
type Outcome struct {
	Kind  Kind
	Index int    // only for OK; else -1
	Why   string // for Abort and Undefined
}

func (o Outcome) String() string {
	if o.Kind == OK {
		return fmt.Sprintf("index %d", o.Index)
	}
	return fmt.Sprintf("%s: %s", o.Kind, o.Why)
}

// Simulate does what NCCL of version v does to choose the GID of a RoCE port, with env as its environment. It follows
// ncclIbGetGidIndex and ncclUpdateGidIndex (src/transport/net_ib.cc, from 2.29 net_ib/connect.cc) and keeps their mistakes:
// an empty slot can be taken, a range that matches nothing leaves index 0, and from 2.26 a type that cannot be read leaves a
// variable unset. The table must be the process's view: where the driver hides other pods' types, they have none here.
func Simulate(t Table, v Version, env map[string]string) Outcome {
	return simulate(t.slots(), v, env)
}

func simulate(slots []slot, v Version, env map[string]string) Outcome {
	def := int64(-1)
	if v.Before(2, 21) {
		def = 0
	}
	index := intParam(env[VarGIDIndex], def)
	switch {
	case index >= int64(len(slots)) || index < 0 && v.Before(2, 21):
		return Outcome{Kind: Abort, Index: -1, Why: fmt.Sprintf("ibv_query_gid has no index %d", index)}
	case index >= 0:
		return Outcome{Kind: OK, Index: int(index)}
	}
	s := scan{slots: slots, skips: !v.Before(2, 26), six: env[VarAddrFamily] == "AF_INET6", roce: intParam(env[VarRoCE], 2)}
	if !s.setRange(env[VarAddrRange], !v.Before(2, 23)) {
		return Outcome{Kind: Abort, Index: -1, Why: VarAddrRange + " without a length ends the process"}
	}
	for i := 1; i < len(s.slots); i++ {
		if end := s.consider(i); end != nil {
			return *end
		}
	}
	return Outcome{Kind: OK, Index: s.current}
}

// scan is the state of one run over a table.
type scan struct {
	slots   []slot
	skips   bool   // goes on when a type cannot be read
	six     bool   // AF_INET6 is wanted
	prefix  []byte // wanted range, 4 or 16 bytes
	bits    int    // 0: any address; negative: none at all, as NCCL's arithmetic has it
	roce    int64
	current int
}

// setRange is envIbAddrRange: anything wrong means no range, but a missing length, which early versions walk into. It
// returns false for that.
func (s *scan) setRange(text string, checks bool) bool {
	if text == "" {
		return true
	}
	text = text[:min(len(text), 127)]
	host, length, found := strings.Cut(text, "/")
	if !found {
		return checks
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || addr.Zone() != "" || addr.Is4() == s.six {
		return true
	}
	n, _ := leadingInt(length, 10)
	if n > int64(addr.BitLen()) {
		return true
	}
	s.prefix, s.bits = addr.AsSlice(), int(max(n, -1))
	return true
}

// consider is ncclUpdateGidIndex for one candidate. It returns nil when the scan goes on.
func (s *scan) consider(index int) *Outcome {
	cur, cand := &s.slots[s.current], &s.slots[index]
	if cand.six != s.six || !s.inRange(&cand.raw) {
		return nil
	}
	if cand.six != cur.six {
		s.current = index
		return nil
	}
	if !cand.valid {
		return nil
	}
	if !s.skips {
		for _, i := range []int{s.current, index} {
			if s.slots[i].text == "" {
				return &Outcome{Kind: Abort, Index: -1, Why: fmt.Sprintf("the type of index %d cannot be read", i)}
			}
		}
	}
	curVer, curSet := roceVersion(cur.text)
	candVer, candSet := roceVersion(cand.text)
	if !candSet || candVer != s.roce {
		return nil // NCCL presets the candidate's version to -1
	}
	if !cur.valid {
		s.current = index
		return nil
	}
	if !curSet {
		why := fmt.Sprintf("index %d or %d, as the type of index %d cannot be read", s.current, index, s.current)
		return &Outcome{Kind: Undefined, Index: -1, Why: why}
	}
	if curVer != candVer {
		s.current = index
	}
	return nil
}

// inRange is matchGidAddrPrefix, which for IPv4 looks at the last four bytes alone.
func (s *scan) inRange(raw *[16]byte) bool {
	if s.bits <= 0 {
		return s.bits == 0
	}
	have := raw[16-len(s.prefix):]
	whole := s.bits / 8
	if !bytes.Equal(have[:whole], s.prefix[:whole]) {
		return false
	}
	rest := s.bits % 8
	return rest == 0 || (have[whole]^s.prefix[whole])>>(8-rest) == 0
}

// isSix: IPv4 is ::ffff:0:0/96 and its multicast form ff0e::ffff:0:0/96.
func isSix(raw [16]byte) bool {
	mapped := [12]byte{10: 0xff, 11: 0xff}
	multicast := [12]byte{0: 0xff, 1: 0x0e, 10: 0xff, 11: 0xff}
	head := [12]byte(raw[:12])
	return head != mapped && head != multicast
}

// valid: neither zero nor link-local, which for NCCL is fe80::/64.
func valid(raw [16]byte) bool {
	linkLocal := [8]byte{0xfe, 0x80}
	return raw != [16]byte{} && [8]byte(raw[:8]) != linkLocal
}

// roceVersion is what ncclIbRoceGetVersionNum makes of a type's text; false: it leaves its result unset.
func roceVersion(text string) (int64, bool) {
	switch {
	case strings.HasPrefix(text, RoCEv1), strings.HasPrefix(text, "RoCE v1"):
		return 1, true
	case strings.HasPrefix(text, RoCEv2):
		return 2, true
	}
	return 0, false
}

// intParam is ncclLoadParam: an empty or oversized text gives the default, any other what strtoll makes of it.
func intParam(text string, def int64) int64 {
	if text == "" {
		return def
	}
	n, ok := leadingInt(text, 0)
	if !ok {
		return def
	}
	return n
}
