// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/k8snetworkplumbingwg/sriovnet"

	"github.com/podfabric/podfabric/plugin/kernel"
)

// confirm holds what was read of the VFs against the library that device plugins use. It reads only the live sysfs, so a
// difference means that a VF came, went or changed its driver between the two looks. The plugin does without it: it would
// bring net/http into every start (docs/decisions).
func confirm(devices []kernel.Device) error {
	for _, d := range devices {
		if !d.VF() {
			continue
		}
		vf := d.PCI.String()
		pf, err := sriovnet.GetPfPciFromVfPci(vf)
		if err != nil || pf != d.PF.String() {
			return fmt.Errorf("look at VF %s: its PF is %s, then %q; run the command again", vf, d.PF, pf)
		}
		number, err := sriovnet.GetVfIndexByPciAddress(vf)
		if err != nil || number != d.Number {
			return fmt.Errorf("look at VF %s: its number is %d, then %d; run the command again", vf, d.Number, number)
		}
		if sriovnet.IsVfPciVfioBound(vf) != (d.Driver == "vfio-pci") {
			return fmt.Errorf("look at VF %s: its driver was %q and is another now; run the command again", vf, d.Driver)
		}
	}
	return nil
}
