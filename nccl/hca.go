// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"strconv"
	"strings"
)

// maxHCAs is how many names NCCL keeps of NCCL_IB_HCA: MAX_IB_DEVS, 16 up to 2.18 and 32 later. A list of ours is never
// longer than 16, so that both read all of it.
const maxHCAs = 16

// maxName is the room that NCCL has for one name, its final zero included; up to 2.29 nothing checks it.
const maxName = 64

// HCA is one port of an RDMA device.
type HCA struct {
	Device string // as /sys/class/infiniband lists it in the pod
	Port   int    // from 1
}

// String gives NCCL's form, mlx5_0:1.
func (h HCA) String() string { return h.Device + ":" + strconv.Itoa(h.Port) }

// HCAList gives the value of NCCL_IB_HCA that takes exactly these ports: "=mlx5_5:1,mlx5_6:1". Exact, because a bare name
// is a prefix (mlx5_1 takes mlx5_10 too), and with the port, because that is the only form that all versions read alike.
func HCAList(hcas []HCA) (string, error) {
	if len(hcas) == 0 || len(hcas) > maxHCAs {
		return "", fmt.Errorf("list of %d HCAs, NCCL takes 1 to %d: %w", len(hcas), maxHCAs, ErrUnwritable)
	}
	names := make([]string, len(hcas))
	for i, h := range hcas {
		if h.Device == "" || len(h.Device) >= maxName || strings.ContainsFunc(h.Device, breaksList) {
			return "", fmt.Errorf("RDMA device name %q: %w", h.Device, ErrUnwritable)
		}
		if h.Port < 1 {
			return "", fmt.Errorf("port %d of RDMA device %s, which NCCL would match with nothing: %w", h.Port, h.Device, ErrUnwritable)
		}
		names[i] = h.String()
	}
	return "=" + strings.Join(names, ","), nil
}

// breaksList tells the characters that end a name in NCCL's list, or that begin its list, or that no file should hold.
func breaksList(r rune) bool {
	return strings.ContainsRune(",:=^;# ", r) || r < 0x20 || r > 0x7e
}

// MatchHCA tells whether NCCL with NCCL_IB_HCA=list uses a port, by parseStringList and matchIfList (src/misc/utils.cc). It
// reads what versions before 2.30 know; the ":rail:plane" of later ones is passed over, as the older ones do.
func MatchHCA(list, device string, port int) bool {
	list, not := strings.CutPrefix(list, "^")
	list, exact := strings.CutPrefix(list, "=")
	var tokens []string
	for token := range strings.SplitSeq(list, ",") {
		if name, _, _ := strings.Cut(token, ":"); name != "" && len(tokens) < 2*maxHCAs {
			tokens = append(tokens, token)
		}
	}
	match := len(tokens) == 0
	for _, token := range tokens {
		name, number, hasPort := strings.Cut(token, ":")
		n, _ := leadingInt(number, 10)
		named := name == device || !exact && strings.HasPrefix(device, name)
		match = match || named && (!hasPort || n == int64(port) || n == -1)
	}
	return match != not
}
