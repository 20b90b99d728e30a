// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"testing"
)

// TestPartsWhileOthersEnd: who reads all parts takes no lock, and a part that goes meanwhile is none.
func TestPartsWhileOthersEnd(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	f, stays := attachment(1, "10.1.0.5/24"), attachment(2, "10.2.0.5/24")
	n.put(t, stays)
	done := make(chan error, 1)
	go func() {
		for range 200 {
			if _, err := n.store.Put(t.Context(), uid, f); err != nil {
				done <- err
				return
			}
			if err := n.store.Drop(t.Context(), uid, f.Owner); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for looks := 0; ; looks++ {
		parts, err := n.store.Parts()
		if err != nil || len(parts) == 0 || parts[len(parts)-1].Owner != stays.Owner {
			t.Fatalf("look %d: %v, %v", looks, parts, err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}
