// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// Funcs are the verbs as skel calls them. This is the only place that sets a deadline and that prints a result; started is
// when the process began, which the deadline counts from, since a CNI plugin is told none.
func (p *Plugin) Funcs(started time.Time) skel.CNIFuncs {
	verb := func(name string, do func(context.Context, netconf.Raw) error) func(*skel.CmdArgs) error {
		if p.Delegated {
			do = asDelegate(name)
		}
		return func(args *skel.CmdArgs) error {
			ctx, cancel := context.WithDeadline(context.Background(), started.Add(p.deadline()))
			defer cancel()
			raw := netconf.Raw{
				Stdin: args.StdinData, ContainerID: args.ContainerID, NetNS: args.Netns, IfName: args.IfName, Args: args.Args, Path: args.Path,
			}
			// The library looks at CNI_NETNS once more when the verb is over, after ADD has printed its result: too late for a
			// refusal, and for ever where a fifo stands in its place. Every verb refuses our own namespace before it begins.
			args.NetnsOverride = "1"
			err := do(ctx, raw)
			p.report(ctx, name, raw, started, err)
			if err != nil {
				return Answer(err)
			}
			return nil
		}
	}
	return skel.CNIFuncs{
		Add: verb("ADD", func(ctx context.Context, raw netconf.Raw) error {
			result, a, err := p.add(ctx, raw)
			if err != nil {
				return err
			}
			if err = types.PrintResult(result, version(raw)); err != nil {
				return a.unheard(ctx, err)
			}
			return nil
		}),
		Del:    verb("DEL", p.Del),
		Check:  verb("CHECK", p.Check),
		GC:     verb("GC", p.GC),
		Status: verb("STATUS", p.Status),
	}
}

// unheard takes an attachment back whose result nobody could be told, as when the runtime was restarted meanwhile. It cannot believe that
// this ADD succeeded, and not every runtime calls DEL then for a pod that it has not written down.
func (a *adding) unheard(ctx context.Context, err error) error {
	err = &netconf.Problem{
		Code: netconf.CodeIO, Remedy: "nothing is to be done: the runtime did not wait for the result, and the attachment is taken back",
		Field: "standard output", Err: err,
	}
	if _, loadErr := a.Records.Load(a.rec.Owner); errors.Is(loadErr, record.ErrNotFound) {
		return err // its DEL came meanwhile
	}
	return a.undo(ctx, err)
}

// version is that of the caller's configuration, in which it wants the result.
func version(raw netconf.Raw) string {
	t, err := netconf.ParseTeardown(raw)
	if err != nil {
		return "" // ADD succeeded with this text, so this cannot be
	}
	return t.CNIVersion
}

// deadline of a verb; a node file that cannot be read is reported by the verb itself.
func (p *Plugin) deadline() time.Duration {
	node, err := p.Node()
	if err != nil || node.Deadline <= 0 {
		return netconf.DefaultDeadline
	}
	return node.Deadline
}

// report is the one line of a verb at level info, or at error.
func (p *Plugin) report(ctx context.Context, verb string, raw netconf.Raw, started time.Time, err error) {
	t, _ := netconf.ParseTeardown(raw) // of a text that cannot be read, the names are empty
	log := p.Log.With("verb", verb, "containerID", raw.ContainerID, "ifname", raw.IfName, "pod", t.Request.Pod.String(),
		"network", t.Name, "took", p.Now().Sub(started).Round(time.Microsecond))
	if err != nil {
		log.ErrorContext(ctx, "failed", "error", err.Error())
		return
	}
	device, rdma := p.subject(attach.Owner{ContainerID: raw.ContainerID, IfName: raw.IfName})
	log.InfoContext(ctx, "done", "pci", device, "rdma", rdma)
}

// subject names the device of an attachment for the log; both are empty when nothing is recorded, as after DEL: release has
// named it then.
func (p *Plugin) subject(o attach.Owner) (device, rdma string) { //nolint:nonamedreturns // tells them apart
	rec, err := p.Records.Load(o)
	if err != nil {
		return "", ""
	}
	return pciOf(rec), rdmaOf(rec)
}
