// SPDX-License-Identifier: Apache-2.0

package link

// ParseVFs reads the VFs of an answer of the kernel.
func ParseVFs(msg []byte) ([]VF, error) { return parseVFs(msg) }
