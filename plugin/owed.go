// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// owing is the record of an attachment that owes address or hint alone, and nothing of a device or a link.
func owing(rec record.Record) record.Record {
	rec.State = record.Returning
	return without(rec)
}

// without is rec without what it says of device and link, so that whoever releases it leaves both alone.
func without(rec record.Record) record.Record {
	rec.Device, rec.Master, rec.Own, rec.Before = bus.ID{}, attach.Lower{}, attach.OwnLink{}, attach.Facts{}
	rec.VF, rec.FLR, rec.Soft, rec.Moved = nil, false, "", false
	return rec
}

// settingsRefused takes out of err what a driver would not have back of a VF's settings, each in words. igb, for one, takes no rate
// while its cable is out. Such a VF waits for its settings as one waits for its PF: a DEL that failed would keep a pod from going
// away for as long, and the claim keeps the VF from the next one.
func settingsRefused(err error) ([]string, error) {
	parts := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		parts = joined.Unwrap()
	}
	var refused []string
	var rest []error
	for _, part := range parts {
		failed := (*attach.StepError)(nil)
		if !errors.As(part, &failed) || !setting(failed.Step) || !refusal(part) {
			rest = append(rest, part)
			continue
		}
		refused = append(refused, fmt.Sprintf("a setting that the driver refuses (%v)", part))
	}
	return refused, errors.Join(rest...)
}

// refusal tells whether a driver said no, as it will the next time; what else may fail is worth another DEL.
func refusal(err error) bool {
	said := []error{
		link.ErrRefused, link.ErrUnsupported, kernel.ErrNotTaken, syscall.EINVAL, syscall.EOPNOTSUPP, syscall.EADDRNOTAVAIL, syscall.EPERM,
	}
	return slices.ContainsFunc(said, func(no error) bool { return errors.Is(err, no) })
}

// nameTaken gives a way home that met a taken name a remedy of its own: that of an ADD, to ask for another name, is none here.
func nameTaken(err error) error {
	if !errors.Is(err, link.ErrNameTaken) {
		return err
	}
	return &netconf.Problem{
		Code: netconf.CodeTryLater, Remedy: "let DEL be called again, or run podfabricctl repair: somebody took the name for another interface meanwhile",
		Err: err,
	}
}

// setting tells whether a step only sets something of a VF, or of another device, at home.
func setting(step attach.Step) bool {
	switch s := step.(type) {
	case attach.SetVF:
		return true
	case attach.SetMAC:
		return s.Link.NS == attach.Host
	case attach.SetTraits:
		return s.Link.NS == attach.Host // a program that the pod put there may be held by a BPF link
	}
	return false
}

// takeOut writes down at the device what is about to be made of it. Where a program of the pod drives it, nothing else than this tells whose it
// is should the record be lost, also if nothing is made of it.
func (a *adding) takeOut(steps []attach.Step) error {
	if a.rec.Device.IsZero() || len(steps) == 0 && !a.rec.Before.Function.Userspace() {
		return nil
	}
	out := record.Out{
		Device: a.rec.Device, Owner: a.rec.Owner, Pod: a.rec.Pod, NetNS: a.rec.NetNS, Before: a.rec.Before, Given: attach.Gives(steps),
	}
	if err := a.Records.SaveOut(out); err != nil {
		return fmt.Errorf("write down that %s is taken from home: %w", a.rec.Device, err)
	}
	return nil
}

// in forgets that the device was out, now that it is home as it was. One that has not got its own name back is still owed that.
func (r *releasing) in(out outcome) error {
	if r.rec.Device.IsZero() || out.misnamed {
		return nil
	}
	return r.Records.DropOut(r.rec.Owner, r.rec.Device)
}
