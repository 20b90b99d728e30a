// SPDX-License-Identifier: Apache-2.0

package rdmans_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/rdmans"
)

// message is what kernel 7.3 sends for one context (rdma resource show ctx), put together by hand from
// include/uapi/rdma/rdma_netlink.h: DEV_INDEX 1, RES_CTX { RES_CTX_ENTRY { CTXN, RES_PID } }.
func message(entry ...byte) []byte {
	msg := []byte{8, 0, 1, 0, 5, 0, 0, 0}
	msg = append(msg, byte(8+len(entry)), 0, 86, 0x80)
	msg = append(msg, byte(4+len(entry)), 0, 87, 0x80)
	return append(msg, entry...)
}

func ctxn() []byte { return []byte{8, 0, 64, 0, 2, 0, 0, 0} }

func pid() []byte { return []byte{8, 0, 28, 0, 0x47, 1, 0, 0} }

func TestParseContexts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		msg  []byte
		want []int
	}{
		"nobody":                  {msg: []byte{8, 0, 1, 0, 5, 0, 0, 0}},
		"a thread":                {msg: message(append(ctxn(), pid()...)...), want: []int{0x147}},
		"a thread that has ended": {msg: message(ctxn()...), want: []int{0}},
	} {
		got, err := rdmans.ParseContexts(tt.msg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got, err := rdmans.ParseContexts(message(6, 0, 28, 0, 1, 0, 0, 0)); err == nil {
		t.Errorf("a PID of two bytes: %v", got)
	}
}

func FuzzParseContexts(f *testing.F) {
	f.Add(message(ctxn()...))
	f.Add(message(pid()...))
	f.Fuzz(func(t *testing.T, msg []byte) {
		threads, err := rdmans.ParseContexts(msg)
		if len(threads) > len(msg)/4 {
			t.Errorf("%d threads out of %d bytes (%v)", len(threads), len(msg), err)
		}
	})
}

func TestUserReadsWell(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]rdmans.User{
		"ib_write_bw (pid 71)": {PID: 71, Comm: "ib_write_bw"}, "somebody": {Comm: "somebody"},
	} {
		if got := u.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
