// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// Machine is what repair needs of the node beside sessions.
type Machine interface {
	// Functions lists the PCI functions that have an RDMA device, in whatever namespace that is.
	Functions(ctx context.Context) ([]bus.ID, error)
	// Promised tells whether kubelet has set a device aside for a container. Its device node is chosen by then.
	Promised(ctx context.Context, dev bus.ID) (bool, error)
	// Elsewhere lists the functions of which something is in a namespace that is not the host's.
	Elsewhere(ctx context.Context) ([]attach.Astray, error)
	// Interfaces lists the links in namespaces that are not the host's.
	Interfaces(ctx context.Context) ([]attach.Interface, error)
	// Scratch makes an empty network namespace; path leads to it until end is called.
	Scratch(ctx context.Context) (path string, end func(), err error)
}

// FindingKind is what a finding is about.
type FindingKind string

// The kinds of findings, in the order in which they are repaired.
const (
	FindRecord     FindingKind = "record"     // a record that cannot be read
	FindAttachment FindingKind = "attachment" // its owner is dead, or its ADD or DEL was cut short
	FindClaim      FindingKind = "claim"      // a claim without an attachment
	FindDevice     FindingKind = "device"     // taken from home by an attachment of which nothing is recorded, or in another program's namespace
	FindLease      FindingKind = "lease"      // an address without an attachment
	FindSoft       FindingKind = "softRoCE"   // a soft RoCE device without an attachment
	FindName       FindingKind = "name"       // a device at home under a name that is not its own
	FindHint       FindingKind = "hint"       // files of a pod without attachments
	FindUverbs     FindingKind = "uverbs"     // a hole in the uverbs numbers
	FindFile       FindingKind = "file"       // what a killed process left in the state folder
	FindState      FindingKind = "state"      // the state folder cannot be written
)

// Outcome is what became of a finding.
type Outcome string

// The outcomes.
const (
	Planned  Outcome = "planned"  // a dry run: this is what would be done
	Repaired Outcome = "repaired" // done
	Left     Outcome = "left"     // not repair's to do, or not possible yet; Detail says why
	Failed   Outcome = "failed"   // Detail is the error
	Noted    Outcome = "noted"    // perhaps nothing is wrong; Detail says what would have to be known, or when to look again
)

// Finding is one thing on the node that is not as it should be.
type Finding struct {
	Kind    FindingKind `json:"kind"`
	Object  string      `json:"object"` // "attachment 4c8e/net1", "device 0000:3b:00.2", "uverbs3"
	Why     string      `json:"why"`
	Action  string      `json:"action"` // imperative; empty when repair has none
	Outcome Outcome     `json:"outcome"`
	Detail  string      `json:"detail"` // of what is planned: what it waits for
}

// Repair finds what kills, lost DELs and dead namespaces have left on the node, and puts it right unless dry is set. It may run
// while pods start and end: everything is looked at again under the locks before it is touched, and what an ADD may still be
// making is left alone. The error is about what could not be looked at; what could not be repaired is in the findings.
func (p *Plugin) Repair(ctx context.Context, m Machine, dry bool) ([]Finding, error) {
	node, err := p.Node()
	if err != nil {
		// As for DEL: what is wrong with the node's settings must not keep devices away.
		if node, err = netconf.ParseNode(nil); err != nil {
			return nil, fmt.Errorf("take the defaults of the node: %w", err)
		}
	}
	s, err := p.Open(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("open the host's network namespace: %w", err)
	}
	r := &repairing{Plugin: p, machine: m, node: node, dry: dry, host: s, found: []Finding{}}
	var errs []error
	for _, look := range []func(context.Context) error{
		r.attachments, r.claims, r.devices, r.leases, r.soft, r.names, r.hints, r.uverbs, r.files, r.strangers, r.room,
	} {
		r.away, r.seen = nil, nil
		errs = append(errs, look(ctx))
	}
	return r.found, errors.Join(append(errs, s.Close())...)
}

// repairing is one repair on its way.
type repairing struct {
	*Plugin
	machine Machine
	node    netconf.Node
	dry     bool
	host    Session // without a pod
	found   []Finding
	// What is in other namespaces, or why that cannot be told; nil: nobody has looked yet for findings of this kind.
	away func() ([]attach.Astray, error)
	seen func() ([]attach.Interface, error)
}

const repairVerb = "repair"

// errSettled: when looked at again under the lock, a finding was none any more.
var errSettled = errors.New("settled by somebody else meanwhile")

// settle notes a finding and does what is to be done about it. do gives a reason when it must stay as it is.
func (r *repairing) settle(ctx context.Context, f Finding, do func(context.Context) (string, error)) {
	if r.dry {
		f.Outcome = Planned
		r.found = append(r.found, f)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.node.Deadline+homeWait+undoLimit)
	defer cancel()
	detail, err := do(ctx)
	switch {
	case errors.Is(err, errSettled):
		return
	case err != nil:
		f.Outcome, f.Detail = Failed, err.Error()
	case detail != "":
		f.Outcome, f.Detail = Left, detail
	default:
		f.Outcome = Repaired
	}
	r.found = append(r.found, f)
}

func (r *repairing) leave(f Finding, why string) {
	f.Outcome, f.Detail = Left, why
	r.found = append(r.found, f)
}

// spare leaves what repair must not touch.
func (r *repairing) spare(f Finding, why string) {
	f.Action = ""
	r.leave(f, why)
}
