// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"strings"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
)

// outcome is what a release came to beside its error.
type outcome struct {
	away  []string         // devices that are in no namespace we can see; empty: all home
	by    []attach.Holding // where these are and who keeps them there, as far as that can be found out
	held  bool             // the netdev is not known to be home, so its addresses may still answer
	notes []string         // warnings
	// misnamed: at home under a name that is not its own, since another device has that.
	misnamed bool
}

// stillAway says what is away and who keeps it.
func (o outcome) stillAway() string {
	away := make([]string, 0, len(o.away))
	for _, a := range o.away {
		away = append(away, called(a, o.by))
	}
	text := strings.Join(away, ", ")
	if by := attach.HeldBy(o.by); by != "" {
		text += ", " + by
	}
	return text
}

// called gives a netdev that is away the name too by which it is found where it is.
func called(away string, held []attach.Holding) string {
	const netdev = "netdev "
	home, of, _ := strings.Cut(away, " of ")
	for _, h := range held {
		there, dev, is := strings.Cut(h.What, " of ")
		if is && dev == of && there != home && strings.HasPrefix(home, netdev) && strings.HasPrefix(there, netdev) {
			return there + " (" + strings.TrimPrefix(home, netdev) + " at home) of " + of
		}
	}
	return away
}

// holders says who keeps what is away, with time of its own. That it could not be found out is no reason to fail, and what was found
// until then is better than nothing.
func (p *Plugin) holders(ctx context.Context, s Session, q attach.Query) []attach.Holding {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), holderLimit)
	defer cancel()
	found, err := s.Holders(ctx, q)
	if err != nil && len(found) == 0 {
		p.Log.DebugContext(ctx, "who holds the device cannot be found out", "device", q.Device.String(), "error", err.Error())
	}
	return found
}

// endHolders is the remedy for devices that are held.
func endHolders(held []attach.Holding) string {
	by := attach.Holders(held)
	switch {
	case by == "":
		return "wait until the device has come home from the network namespace of its last owner; the runtime tries again by itself"
	case attach.Inhabited(held):
		return "delete the pod that has the device now, or end what keeps it, " + by + "; the runtime tries again by itself"
	}
	return "end what keeps the device in a network namespace of its last owner, " + by + "; the runtime tries again by itself"
}

// left is why something is still away, and what can be done about it.
func (o outcome) left() string {
	text, by := "still away: "+o.stillAway(), attach.Holders(o.by)
	switch {
	case by == "":
		return text
	case attach.Inhabited(o.by):
		return text + "; it looks as if another program has given it to a pod since: delete that pod, or end " + by
	}
	return text + "; end " + by
}

// explained adds to a refusal who holds the device, when that is why it was refused.
func (a *adding) explained(ctx context.Context, refusal error, facts attach.Facts) error {
	problem := (*netconf.Problem)(nil)
	if !errors.As(refusal, &problem) || problem.Code != netconf.CodeTryLater || !attach.Hidden(facts) {
		return refusal
	}
	held := a.holders(ctx, a.session, a.query())
	by := attach.HeldBy(held)
	if by == "" {
		return refusal
	}
	told := *problem
	told.Found += ", " + by
	return &told
}
