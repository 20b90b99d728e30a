// SPDX-License-Identifier: Apache-2.0

//go:build lab

package node

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"unsafe"
)

// Uverbs is the N of a PCI function's /dev/infiniband/uverbsN.
func Uverbs(t testing.TB, pci string) int {
	t.Helper()
	var n int
	name := only(filepath.Join("/sys/bus/pci/devices", pci, "infiniband_verbs"))
	if _, err := fmt.Sscanf(name, "uverbs%d", &n); err != nil {
		t.Fatalf("uverbs number of %s: %q: %v", pci, name, err)
	}
	return n
}

// Hold makes a user context on a verbs device, as ibv_open_device does (IB_USER_VERBS_CMD_GET_CONTEXT), until the test ends or the
// returned function is called. The tools of rdma-core cannot: they have no provider for rdmasim.
func Hold(t testing.TB, uverbs int) func() {
	t.Helper()
	f, err := os.OpenFile(fmt.Sprintf("/dev/infiniband/uverbs%d", uverbs), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() { _ = f.Close() })
	t.Cleanup(stop)
	response := new([2]uint32)
	cmd := make([]byte, 16)
	binary.LittleEndian.PutUint16(cmd[4:], uint16(len(cmd)/4))
	binary.LittleEndian.PutUint16(cmd[6:], 2)
	binary.LittleEndian.PutUint64(cmd[8:], uint64(uintptr(unsafe.Pointer(response))))
	_, err = f.Write(cmd)
	runtime.KeepAlive(response)
	if err != nil {
		t.Fatalf("open a context on uverbs%d: %v", uverbs, err)
	}
	return stop
}
