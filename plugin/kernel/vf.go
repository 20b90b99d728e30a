// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// ErrNotTaken says that a driver took a setting of a VF and does not have it.
var ErrNotTaken = errors.New("the PF's driver said yes and did not do it")

// Bounds on the wait for a driver that does what it was told after it has said yes, as some do with a MAC.
const (
	takeWithin = 2 * time.Second
	takePause  = 20 * time.Millisecond
)

// lookVF adds what the PF's driver holds for a VF, what kind of switch the PF has, and whether the function can be reset.
func (s *Session) lookVF(f *attach.Facts, now seen) error {
	fn := &f.Function
	fn.Resets = now.function.Resets
	pf := fn.PF
	if !fn.VF {
		pf = now.function.PCI
	}
	var err error
	if fn.ESwitch, err = s.host.links.ESwitch(pf); err != nil || fn.PFLink == "" {
		return err
	}
	l, found, err := s.choose(s.host, bus.PCI(fn.PF), now.links[s.host])
	if err != nil || !found {
		return err
	}
	vfs, err := s.host.links.VFs(l.Index)
	if err != nil {
		return err
	}
	f.Siblings = map[int]string{}
	for _, vf := range vfs {
		if vf.Number == fn.Number {
			state := held(vf)
			f.VF = &state
			continue
		}
		f.Siblings[vf.Number] = vf.MAC
	}
	return nil
}

func held(vf link.VF) attach.VFState {
	return attach.VFState{
		MAC: vf.MAC, VLAN: vf.VLAN, QoS: vf.QoS, Proto: vf.Proto, Spoofchk: vf.Spoofchk, Trust: vf.Trust, LinkState: vf.LinkState,
		MinTxRate: vf.MinTxRate, MaxTxRate: vf.MaxTxRate,
	}
}

// setVF sets one thing of a VF through the PF's netdev, and waits until the driver shows it.
func (s *Session) setVF(ctx context.Context, v attach.SetVF) error {
	pf, found, err := s.linkOf(s.host, bus.PCI(v.PF))
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("set %s of VF %d: the netdev of its PF %s is not at home: %w", v.What, v.Number, v.PF, attach.ErrConflict)
	}
	now, err := s.heldOf(pf, v)
	if err != nil || same(v.What, now, v.To) {
		return err
	}
	if err = s.tell(pf, v); err != nil {
		return fmt.Errorf("PF %s (%s): %w", pf.Name, v.PF, err)
	}
	for until := time.Now().Add(takeWithin); ; {
		now, err = s.heldOf(pf, v)
		if err != nil || same(v.What, now, v.To) {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("set %s of VF %d of PF %s (%s): %w: it is %s, not %s", v.What, v.Number, pf.Name, v.PF, ErrNotTaken,
				value(v.What, now), value(v.What, v.To))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("set %s of VF %d of PF %s: %w", v.What, v.Number, v.PF, ctx.Err())
		case <-time.After(takePause):
		}
	}
}

// heldOf asks the driver for one VF.
func (s *Session) heldOf(pf link.Link, v attach.SetVF) (attach.VFState, error) {
	vfs, err := s.host.links.VFs(pf.Index)
	if err != nil {
		return attach.VFState{}, err
	}
	i := slices.IndexFunc(vfs, func(vf link.VF) bool { return vf.Number == v.Number })
	if i < 0 {
		return attach.VFState{}, fmt.Errorf("PF %s (%s) has no VF %d: %w", pf.Name, v.PF, v.Number, attach.ErrConflict)
	}
	return held(vfs[i]), nil
}

// tell sends the one message of a step.
func (s *Session) tell(pf link.Link, v attach.SetVF) error {
	c, to := s.host.links, v.To
	switch v.What {
	case attach.VFVLAN:
		return c.SetVFVLAN(pf.Index, v.Number, to.VLAN, to.QoS, to.Proto)
	case attach.VFMAC:
		return c.SetVFMAC(pf.Index, v.Number, to.MAC)
	case attach.VFRate:
		return c.SetVFRate(pf.Index, v.Number, to.MinTxRate, to.MaxTxRate)
	case attach.VFSpoofchk:
		return c.SetVFSpoofchk(pf.Index, v.Number, to.Spoofchk)
	case attach.VFTrust:
		return c.SetVFTrust(pf.Index, v.Number, to.Trust)
	case attach.VFLinkState:
		return c.SetVFLinkState(pf.Index, v.Number, to.LinkState)
	}
	return fmt.Errorf("VF setting %q: %w", v.What, errors.ErrUnsupported)
}

// value says what one setting of a state is, in words that two equal ones share.
func value(what attach.VFSetting, v attach.VFState) string {
	switch what {
	case attach.VFVLAN:
		proto := v.Proto
		if proto == "" || v.VLAN == 0 {
			proto = "802.1q" // without a VLAN drivers show this or nothing
		}
		return fmt.Sprintf("VLAN %d, QoS %d, %s", v.VLAN, v.QoS, proto)
	case attach.VFMAC:
		return v.MAC
	case attach.VFRate:
		return fmt.Sprintf("%d to %d Mb/s", v.MinTxRate, v.MaxTxRate)
	case attach.VFSpoofchk:
		return onOff(v.Spoofchk)
	case attach.VFTrust:
		return onOff(v.Trust)
	case attach.VFLinkState:
		return v.LinkState
	}
	return ""
}

func same(what attach.VFSetting, a, b attach.VFState) bool { return value(what, a) == value(what, b) }

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// resetWithin bounds the wait for a reset, for which PCI Express allows 100 ms. A driver may hang in one for ever, as igbvf does
// while its netdev is down (seen with Linux 7.3), and nothing can end the thread that asked for it.
const resetWithin = 5 * time.Second

// resetFunction makes a function-level reset by the file that the kernel has for it. There is no state to look at first: each
// call resets.
func (s *Session) resetFunction(ctx context.Context, v attach.ResetFunction) error {
	if v.Device.SF() {
		return fmt.Errorf("reset %s: a sub-function cannot be reset on its own: %w", v.Device, errors.ErrUnsupported)
	}
	fn, err := s.sys.Device(v.Device)
	if err != nil {
		return fmt.Errorf("reset %s: %w: %w", v.Device, attach.ErrConflict, err)
	}
	if !fn.Resets {
		return fmt.Errorf("reset %s: the function cannot be reset on its own: %w", v.Device, errors.ErrUnsupported)
	}
	done := make(chan error, 1)
	go func() { done <- reset(s.kernel.Sysfs, v.Device.PCI) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("reset %s: the driver %s has not come back from it: %w", v.Device, fn.Driver, ctx.Err())
	case <-time.After(resetWithin):
		return fmt.Errorf("reset %s: the driver %s has not come back from it: %w", v.Device, fn.Driver, context.DeadlineExceeded)
	}
}

// reset writes the file. What fails is said with our words for it where the kernel's are "no such file or directory".
func reset(sys string, a pci.Addr) error {
	file, err := os.OpenFile(sys+"/bus/pci/devices/"+a.String()+"/reset", os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString("1")
		err = errors.Join(err, file.Close())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV):
		return fmt.Errorf("reset %s: it went away: %w", a, attach.ErrConflict)
	case err != nil:
		return fmt.Errorf("reset %s: %w", a, err)
	}
	return nil
}
