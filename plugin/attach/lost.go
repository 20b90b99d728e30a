// SPDX-License-Identifier: Apache-2.0

package attach

// Lost says by what an attachment's own link is known in a namespace that is not at hand: one whose path is gone while somebody keeps it, or
// one that the pod made within its own.
type Lost struct {
	// NetNS is the pod's, as recorded. It counts with a cookie alone: an inode may be another namespace's by now.
	NetNS NetNS
	// MAC is one that only this attachment's link has; empty: it cannot be told from others' but in NetNS.
	MAC string
}

// Stray tells whether the link that was made on a master is not where it was put, so that it may still answer somewhere else.
func Stray(before, now Facts) bool {
	return before.Master != nil && !chained(before) && now.Link == nil
}

// LostOf is how the link of an attachment is looked for. A MAC that a network chose may be another pod's by now.
func LostOf(owner Owner, own OwnLink, ns NetNS) *Lost {
	l := &Lost{NetNS: ns}
	if own.MAC == OwnMAC(owner) {
		l.MAC = own.MAC
	}
	return l
}
