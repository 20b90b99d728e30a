// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/plugin/statedir/proctest"
	"github.com/podfabric/podfabric/rdmans/bus"
)

func TestMain(m *testing.M) {
	os.Exit(proctest.Main(m, map[string]func([]string) error{
		"add":  add,
		"drop": drop,
		"race": race,
		"full": full,
		"lost": lost,
	}))
}

func device(text string) bus.ID {
	a, err := bus.Parse(text)
	if err != nil {
		panic(err)
	}
	return a
}

func owner(id string) attach.Owner { return attach.Owner{ContainerID: id, IfName: "net1"} }

// intent is what ADD saves first.
func intent(o attach.Owner, dev bus.ID) record.Record {
	return record.Record{
		State: record.Intent, Owner: o, Device: dev, Kind: netconf.KindVF, Network: "rail0", CNIVersion: "1.1.0",
		Pod:   netconf.Pod{Namespace: "team-a", Name: "pod-0", UID: "b7f3"},
		NetNS: attach.NetNS{Path: "/run/netns/x", Dev: 4, Ino: 4026532177},
		Before: attach.Facts{
			Mode:     attach.Exclusive,
			Function: attach.Function{ID: dev, Exists: true, Driver: "igbvf", VF: true, Number: 1, NUMA: -1},
			Link:     &attach.Link{Place: attach.Place{NS: attach.Host, Name: "eth3"}, Index: 7, Type: "ether", MAC: "02:00:00:00:00:01", MTU: 1500},
			RDMA:     &attach.RDMA{Index: 3, Name: "mlx5_3", NS: attach.Host, NodeGUID: "0200:00ff:fe00:0001", Ports: 1, Uverbs: 3},
		},
		IPAM:    record.IPAM{Kind: netconf.IPAMDelegate, Plugin: "whereabouts", Config: json.RawMessage(`{"name":"rail0","ipam":{"type":"whereabouts"}}`)},
		Created: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Writer: "v0.1.0",
	}
}

// add does what ADD does: intent, claim, done.
func add(args []string) error {
	s, r := record.New(args[0]), intent(owner(args[1]), device(args[2]))
	if err := s.SaveHome(r.Device, r.Before); err != nil {
		return err
	}
	if err := s.Save(r); err != nil {
		return err
	}
	if err := s.Claim(r.Device, r.Owner); err != nil {
		return err
	}
	r.State, r.Moved = record.Done, true
	return s.Save(r)
}

func drop(args []string) error {
	return record.New(args[0]).Drop(owner(args[1]), device(args[2]))
}

// race claims a device and prints who won.
func race(args []string) error {
	s, o, dev := record.New(args[0]), owner(args[1]), device(args[2])
	if err := s.Save(intent(o, dev)); err != nil {
		return err
	}
	err := s.Claim(dev, o)
	if errors.Is(err, record.ErrClaimed) {
		return nil
	}
	if err == nil {
		fmt.Print(o)
	}
	return err
}

// lost looks for an owner's claims, and takes them back, where no claim can be read.
func lost(args []string) error {
	s, o := record.New(args[0]), owner(args[1])
	dev, err := s.ClaimedBy(o)
	for what, err := range map[string]error{"look": err, "unclaim": s.Unclaim(o, bus.ID{}), "drop": s.Drop(o, bus.ID{})} {
		if !errors.Is(err, syscall.EIO) || errors.Is(err, record.ErrNotFound) {
			return fmt.Errorf("%s, where %v was found, ended with %v", what, dev, err) //nolint:errorlint // it may be nil
		}
	}
	return nil
}

// full has a small tmpfs of its own and fills it.
func full(args []string) error {
	if err := syscall.Mount("tmpfs", args[0], "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	dir, dev := filepath.Join(args[0], "podfabric"), device("0000:3b:00.2")
	s, r := record.New(dir), intent(owner("a"), dev)
	if err := add([]string{dir, "a", dev.String()}); err != nil {
		return fmt.Errorf("with room: %w", err)
	}
	filler, err := os.Create(filepath.Join(args[0], "filler"))
	if err != nil {
		return err
	}
	for _, err = filler.Write(make([]byte, 4096)); err == nil; {
		_, err = filler.Write(make([]byte, 4096))
	}
	if err := filler.Close(); err != nil {
		return err
	}
	before, _ := os.ReadDir(filepath.Join(dir, "attachments", "a"))
	r.Warnings = []string{string(make([]byte, 16384))}
	if err := explained(s.Save(r), "free space"); err != nil {
		return fmt.Errorf("save on a full disk: %w", err)
	}
	if got, err := s.Load(r.Owner); err != nil || got.State != record.Done {
		return fmt.Errorf("the old record is hurt: %v, %w", got.State, err)
	}
	if after, _ := os.ReadDir(filepath.Join(dir, "attachments", "a")); len(after) != len(before) {
		return fmt.Errorf("a temporary file was left: %v", after)
	}
	if err := syscall.Mount("", args[0], "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	for what, err := range map[string]error{
		"save": s.Save(r), "drop": s.Drop(r.Owner, dev), "another": s.Save(intent(owner("b"), dev)), "home": s.SaveHome(device("0000:3b:00.3"), r.Before),
	} {
		if bad := explained(err, "read-write"); bad != nil {
			return fmt.Errorf("%s on a read-only disk: %w", what, bad)
		}
	}
	if o, err := s.Claimant(dev); err != nil || o != r.Owner {
		return fmt.Errorf("look on a read-only disk: %v, %w", o, err)
	}
	if err := syscall.Mount("", args[0], "", syscall.MS_REMOUNT, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	if err := s.Drop(r.Owner, dev); err != nil {
		return fmt.Errorf("drop on a full disk: %w", err)
	}
	return nil
}
