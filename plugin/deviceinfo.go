// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/devinfo"
)

// deviceInfo tells Multus what the pod has now. It is the last thing that ADD does, and its failure stops no pod: the file
// only informs. A device that stays at home is described by its device plugin, if by anyone.
func (a *adding) deviceInfo(ctx context.Context, facts attach.Facts) {
	if a.conf.DeviceInfo == "" || a.rec.Device.IsZero() {
		return
	}
	info := devinfo.Info{PCI: a.rec.Device.String()}
	if pf := facts.Function.PF; !pf.IsZero() {
		info.PF = pf.String()
	}
	switch {
	case a.conf.RDMA.SoftRoCE && facts.Soft != nil:
		info.RDMA = facts.Soft.Name
	case facts.RDMA != nil && facts.RDMA.NS != attach.Elsewhere:
		info.RDMA = facts.RDMA.Name
	}
	if err := a.DevInfo.Write(a.conf.DeviceInfo, info); err != nil {
		a.log.WarnContext(ctx, "the device-info file could not be written", "error", err.Error())
	}
}
