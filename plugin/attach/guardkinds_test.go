// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
)

// kindRefusal is a refusal of a kind.
type kindRefusal struct {
	base base
	refusal
}

func kindRefusals() []kindRefusal {
	return slices.Concat(settingRefusals(), deviceRefusals(), masterRefusals(), chainRefusals())
}

func TestGuardRefusesOfEachKind(t *testing.T) {
	t.Parallel()
	for _, tt := range kindRefusals() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, f := tt.base()
			n := netconf.Node{}
			tt.change(&c, &n, &f)
			was := recorded(t, f)
			p := problem(t, attach.Guard(c, n, "net1", f))
			type answer struct {
				Code         uint
				Field, Found string
			}
			if diff := cmp.Diff(answer{tt.code, tt.field, tt.found}, answer{p.Code, p.Field, p.Found}); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(p.Error(), tt.remedy) {
				t.Errorf("text %q does not begin with %q", p.Error(), tt.remedy)
			}
			if !strings.Contains(p.Right, tt.right) || (tt.right == "") != (p.Right == "") {
				t.Errorf("right is %q, want %q in it", p.Right, tt.right)
			}
			if diff := cmp.Diff(was, recorded(t, f)); diff != "" {
				t.Errorf("facts changed (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever two things are wrong, there is an answer and no panic: a device that is not there has nothing to look at.
func TestGuardOfTwoRefusals(t *testing.T) {
	t.Parallel()
	rows := kindRefusals()
	for _, a := range rows {
		for _, b := range rows {
			c, f := a.base()
			n := netconf.Node{}
			a.change(&c, &n, &f)
			if !applies(b.refusal, c, n, f) {
				continue
			}
			b.change(&c, &n, &f)
			_ = attach.Guard(c, n, "net1", f)
		}
	}
}

// applies tells whether a change can be made to what another one left.
func applies(r refusal, c netconf.Conf, n netconf.Node, f attach.Facts) (yes bool) { //nolint:nonamedreturns // a deferred function sets it
	defer func() { yes = recover() == nil }()
	if f.Link != nil {
		f.Link = new(*f.Link)
	}
	if f.RDMA != nil {
		f.RDMA = new(*f.RDMA)
	}
	if f.Master != nil {
		f.Master = new(*f.Master)
	}
	if f.VF != nil {
		f.VF = new(*f.VF)
	}
	r.change(&c, &n, &f)
	return true
}
