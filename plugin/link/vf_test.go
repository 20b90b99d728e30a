// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/link"
)

// attr is one attribute as include/uapi/linux/netlink.h lays it out.
func attr(kind uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func u32(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return b
}

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// The numbers are those of include/uapi/linux/if_link.h: IFLA_VFINFO_LIST 22, IFLA_VF_INFO 1, IFLA_VF_MAC 1, _VLAN 2,
// _SPOOFCHK 4, _LINK_STATE 5, _RATE 6, _TRUST 9, _VLAN_LIST 12 with _VLAN_INFO 1.
func answer(vfs ...[]byte) []byte {
	const nested = 1 << 15
	var infos []byte
	for _, vf := range vfs {
		infos = append(infos, attr(1|nested, vf...)...)
	}
	return join(make([]byte, 16), attr(3, []byte("eth1\x00")...), attr(22|nested, infos...))
}

func vf(number uint32, mac byte) []byte {
	return attr(1, join(u32(number), []byte{2, 0, 0, 0, 0, mac}, make([]byte, 26))...)
}

func TestParseVFs(t *testing.T) {
	t.Parallel()
	full := join(
		vf(3, 7), attr(2, u32(3, 100, 5)...), attr(12, attr(1, join(u32(3, 100, 5), []byte{0x88, 0xa8, 0, 0})...)...), attr(3, u32(3, 1000)...),
		attr(4, u32(3, 1)...), attr(5, u32(3, 2)...), attr(6, u32(3, 10, 1000)...), attr(9, u32(3, 1)...), attr(8|1<<15, attr(1, u32(1, 2)...)...),
	)
	// A driver that knows neither spoofchk nor trust leaves all ones. VF 0 is missing: the driver failed for it.
	bare := join(vf(1, 8), attr(2, u32(1, 0, 0)...), attr(4, u32(1, 0xffffffff)...), attr(5, u32(1, 77)...), attr(9, u32(1, 0xffffffff)...))
	got, err := link.ParseVFs(answer(full, bare))
	want := []link.VF{
		{
			Number: 3, MAC: "02:00:00:00:00:07", VLAN: 100, QoS: 5, Proto: "802.1ad", Spoofchk: true, Trust: true, LinkState: "disable",
			MinTxRate: 10, MaxTxRate: 1000,
		},
		{Number: 1, MAC: "02:00:00:00:00:08", Proto: "802.1q", LinkState: "auto"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := link.ParseVFs(make([]byte, 16)); len(got) != 0 || err != nil {
		t.Errorf("of no PF: %v, %v", got, err)
	}
	if _, err := link.ParseVFs(answer(attr(2, u32(1, 0, 0)...))); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("a VF without a number: %v", err)
	}
}

func FuzzParseVFs(f *testing.F) {
	f.Add(answer(vf(0, 1)))
	f.Add(answer(join(vf(0, 1), attr(12, attr(1, 1)...))))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, msg []byte) {
		vfs, err := link.ParseVFs(msg)
		for _, vf := range vfs {
			if err == nil && (vf.Number < 0 || vf.Proto == "" || vf.LinkState == "") {
				t.Errorf("%+v", vf)
			}
		}
	})
}
