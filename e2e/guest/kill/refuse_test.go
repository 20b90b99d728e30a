// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"fmt"
	"syscall"
	"testing"
)

// refusals lets steps of ADD fail, not done at all or done all the same, and wants ADD to have taken everything back by itself. Each
// sort of step is refused in each way once; the fake machine refuses all of them everywhere.
func (h *harness) refusals(t *testing.T, kinds []*kind, before []string) {
	t.Helper()
	for _, k := range kinds {
		if k.onlyDel {
			continue
		}
		r := h.round(t, k)
		r.bring(t, r.a)
		if h.reached[k.name] == nil { // only these were asked for
			faulty(r.call(r.a), "", "").Add(t)
			h.reached[k.name] = readPoints(t)
			r.del(t, r.a)
		}
		for i, p := range h.reached[k.name] {
			for _, how := range []string{"deny", "spoil"} {
				if p.isLook() || h.refused[how+p.kind] && !h.full {
					continue
				}
				h.refused[how+p.kind] = true
				t.Run(fmt.Sprintf("%s %d %s of %s", how, i+1, p.kind, k.name), func(t *testing.T) {
					_, failure := faulty(r.call(r.a), "", fmt.Sprintf("%s=%d:%d", how, i+1, syscall.EIO)).Run(t, "ADD")
					readPoints(t)
					// A VF's own MAC that is refused is tried again in another order (attach.AdminFirst).
					if failure == nil && p.kind != "SetMAC" {
						t.Errorf("ADD succeeded; wanted it to fail at point %d, %v", i+1, p)
					}
					defer h.clear(t, r, before)
					if k.take == nil && failure != nil {
						if diff := h.differences(t, before, patience); diff != nil {
							t.Errorf("ADD left: %q", diff)
						}
					}
					r.del(t, r.a)
				})
			}
		}
		r.take(t, r.a)
		if diff := h.differences(t, before, patience); diff != nil {
			t.Errorf("left after refusals of %s: %q", k.name, diff)
		}
	}
}
