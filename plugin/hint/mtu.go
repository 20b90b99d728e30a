// SPDX-License-Identifier: Apache-2.0

package hint

// roceHeaders is what iboe_get_mtu (include/rdma/ib_addr.h) takes off the netdev's MTU: GRH 40, UDP 8, BTH 12, XRC 4,
// atomic 28 and ICRC 4 bytes.
const roceHeaders = 40 + 8 + 12 + 4 + 28 + 4

// roceMTU gives the active MTU of a RoCE port on a netdev of the given MTU, both in bytes: the largest of RDMA's five sizes
// that fits. 0: none does.
func roceMTU(netdev int) int {
	for size := 4096; size >= 256; size /= 2 {
		if netdev-roceHeaders >= size {
			return size
		}
	}
	return 0
}
