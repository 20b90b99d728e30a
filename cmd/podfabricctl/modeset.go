// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/podfabric/podfabric/rdmans"
)

// modeSet is the output of `mode set --json`.
type modeSet struct {
	Wanted         string    `json:"wanted"`
	Before         string    `json:"before"`
	Now            string    `json:"now"` // in a dry run: as before
	DryRun         bool      `json:"dryRun"`
	Refused        *string   `json:"refused"`  // why nothing was changed; null: it was not refused
	Pending        []string  `json:"pending"`  // why it is not in force yet, or not for ever
	InTheWay       []wayView `json:"inTheWay"` // namespaces that keep the kernel from changing it now
	Wrote          *string   `json:"wrote"`    // the file that was, or in a dry run would be, written
	Persistent     []setting `json:"persistent"`
	KernelArgument string    `json:"kernelArgument"` // for systems whose /etc is not yours
	Notes          []string  `json:"notes"`
}

// wayView is a namespace in the way.
type wayView struct {
	NetNS   string   `json:"netns"`
	Holders []string `json:"holders"`
}

// setMode does what `mode set` is for. The error is about what could not be read.
func setMode(ctx context.Context, n moder, want rdmans.Mode, dry bool) (modeSet, error) {
	before, err := modeWord(n)
	if err != nil {
		return modeSet{}, err
	}
	v := modeSet{
		Wanted: string(want), Before: before, Now: before, DryRun: dry, Pending: []string{}, InTheWay: []wayView{}, Notes: []string{},
		KernelArgument: kernelArgument + "=" + number(want),
	}
	if v.Persistent, err = persistent(n.Root()); err != nil {
		return modeSet{}, err
	}
	others, err := v.refuse(n.Root(), want)
	if err != nil || v.Refused != nil {
		return v, err
	}
	if err = v.live(ctx, n, want); err != nil {
		return modeSet{}, err
	}
	if !others || v.contradicts(want) {
		v.keep(ctx, n, want)
	}
	v.Notes = append(v.Notes, consequences(want))
	if !dry {
		v.Persistent, err = persistent(n.Root())
	}
	return v, err
}

// refuse stops when somebody else sets another mode, and tells whether somebody else sets this one, which leaves nothing to write.
func (v *modeSet) refuse(root string, want rdmans.Mode) (bool, error) {
	others := false
	for _, s := range v.Persistent {
		switch {
		case s.Owner == ownerUs:
		case s.Mode == string(want):
			others = true
			v.Notes = append(v.Notes, fmt.Sprintf("%s sets %s for the next boot already (%s); %s is not written", s.Source, want, s.Owner, modeFile))
		default:
			v.Refused = orNull(remedy(s, want))
			return false, nil
		}
	}
	by, err := managed(root)
	if by && !others {
		v.Refused = orNull("change the MachineConfig of this node, which sets the RDMA mode (" + machineConfig + "): " +
			"spec.kernelArguments: [" + v.KernelArgument + "]")
	}
	return others, err
}

// contradicts tells whether podfabric's own file says something else.
func (v *modeSet) contradicts(want rdmans.Mode) bool {
	return slices.ContainsFunc(v.Persistent, func(s setting) bool { return s.Owner == ownerUs && s.Mode != string(want) })
}

// remedy says what to change instead.
func remedy(s setting, want rdmans.Mode) string {
	switch {
	case s.Owner == ownerSNO:
		return fmt.Sprintf("the SR-IOV network operator sets the mode of this node, to %s in %s; change it there:\n\n%s", s.Mode, s.Source, poolConfig(want))
	case s.Source == sourceKernel:
		return fmt.Sprintf("change the kernel argument %s, which sets %s, to %s=%s where the node's boot loader or image is configured",
			kernelArgument, s.Mode, kernelArgument, number(want))
	}
	return fmt.Sprintf("remove %s from %s, which sets %s and is not podfabric's, or set it to %s there", option, s.Source, s.Mode, number(want))
}

// poolConfig is how the SR-IOV network operator is told (its doc/rdma-configuration.md).
func poolConfig(want rdmans.Mode) string {
	return fmt.Sprintf(`apiVersion: sriovnetwork.openshift.io/v1
kind: SriovNetworkPoolConfig
metadata: {name: rdma-%s, namespace: sriov-network-operator}
spec:
  nodeSelector: {matchLabels: {kubernetes.io/os: linux}}   # the nodes that are to have it; they are drained and rebooted
  maxUnavailable: 1
  rdmaMode: %s
`, want, want)
}

// live sets the mode at once if the kernel lets it, and says what is in the way if not.
func (v *modeSet) live(ctx context.Context, n moder, want rdmans.Mode) error {
	switch {
	case v.Before == string(want):
		return nil
	case v.Before == "none":
		v.Notes = append(v.Notes, "the kernel has no RDMA subsystem loaded; the mode is set when ib_core is")
		return nil
	}
	var err error
	if !v.DryRun {
		err = n.SetMode(want)
	}
	if err == nil && !v.DryRun {
		v.Now = string(want)
		return nil
	}
	if err != nil && !errors.Is(err, rdmans.ErrBusy) {
		return err
	}
	list, listErr := n.Namespaces(ctx)
	if listErr != nil {
		return listErr
	}
	for _, ns := range list {
		v.InTheWay = append(v.InTheWay, wayView{NetNS: ns.Name(), Holders: holders(ns.Holders)})
	}
	if err != nil || len(list) > 0 {
		v.Pending = append(v.Pending, fmt.Sprintf("the mode stays %s until the next boot: the kernel changes it only while no other network namespace exists", v.Before))
	}
	if err != nil && len(list) == 0 {
		v.Notes = append(v.Notes, "no holder of a namespace can be seen; one may be held by a socket alone, or be about to go: try again")
	}
	return nil
}

// keep writes the file for the next boot.
func (v *modeSet) keep(ctx context.Context, n moder, want rdmans.Mode) {
	wrote, err := writeMode(n.Root(), want, v.DryRun)
	switch {
	case errors.Is(err, syscall.EROFS):
		v.Pending = append(v.Pending, "/etc cannot be written on this system: give the kernel the argument "+v.KernelArgument)
		return
	case err != nil:
		v.Pending = append(v.Pending, err.Error())
		return
	case wrote:
		v.Wrote = orNull(modeFile)
	}
	const rebuild = "rebuild it (update-initramfs -u, or dracut --force), or the old mode returns at the next boot"
	switch has, known := n.Initramfs(ctx); {
	case has:
		v.Notes = append(v.Notes, "ib_core is in the initramfs, which has a copy of modprobe's files: "+rebuild)
	case !known:
		v.Notes = append(v.Notes, "if ib_core is in the initramfs, which could not be looked into: "+rebuild)
	}
}

// consequences says whom the mode stops.
func consequences(want rdmans.Mode) string {
	if want == rdmans.Exclusive {
		return "in exclusive mode k8s-rdma-shared-dev-plugin refuses to start, and pods on macvlan or ipvlan see no RDMA device"
	}
	return "in shared mode rdma-cni fails, and so do podfabric's networks with rdma.mode \"move\" or with rdma.softRoCE"
}

func (v modeSet) print(w io.Writer) {
	if v.Refused != nil {
		fmt.Fprintln(w, "nothing was changed:", *v.Refused)
		return
	}
	written := "written"
	if v.DryRun {
		written = "would be written"
	}
	switch {
	case v.Before == v.Wanted:
		fmt.Fprintf(w, "the mode is %s already\n", v.Now)
	case v.Before == "none":
	case v.DryRun:
		fmt.Fprintf(w, "the mode is %s; a dry run does not ask the kernel to change it\n", v.Before)
	case v.Now == v.Wanted:
		fmt.Fprintf(w, "the mode is %s now, it was %s\n", v.Now, v.Before)
	}
	for _, p := range v.Pending {
		fmt.Fprintln(w, p)
	}
	for _, ns := range v.InTheWay {
		fmt.Fprintf(w, "    in the way: %s, held by %s\n", ns.NetNS, printable(strings.Join(ns.Holders, ", ")))
	}
	if v.Wrote != nil {
		fmt.Fprintf(w, "%s for every boot to come: %s\n", written, *v.Wrote)
	}
	fmt.Fprintf(w, "kernel argument, for systems whose /etc is part of an image: %s\n", v.KernelArgument)
	for _, note := range v.Notes {
		fmt.Fprintln(w, "note:", note)
	}
}

// lookTime bounds the look into an initramfs.
const lookTime = 30 * time.Second

// Initramfs asks the distribution's tool for the list of files in the initramfs.
func (m *machine) Initramfs(ctx context.Context) (bool, bool) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	release, err := os.ReadFile(m.path("/proc/sys/kernel/osrelease"))
	if err != nil {
		return false, false
	}
	kernel := strings.TrimSpace(string(release))
	for _, with := range []struct{ tool, image string }{
		{"lsinitramfs", "/boot/initrd.img-" + kernel},
		{"lsinitrd", "/boot/initramfs-" + kernel + ".img"},
	} {
		if _, err := os.Stat(m.path(with.image)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		list, err := exec.CommandContext(ctx, with.tool, m.path(with.image)).Output()
		if err == nil {
			return strings.Contains(string(list), "/ib_core.ko"), true
		}
	}
	return false, false
}
