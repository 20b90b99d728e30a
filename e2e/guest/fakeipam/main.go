// SPDX-License-Identifier: Apache-2.0

// Command fakeipam is a CNI IPAM plugin for tests: it keeps leases as files, which a test can count, and hangs on ADD for as
// long as the test wants.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// dir holds one file a lease, and the file "hang" while ADD is to hang.
const dir = "/var/lib/fakeipam"

func main() {
	if err := run(); err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"code": 150, "msg": err.Error()})
		os.Exit(1)
	}
}

func run() error {
	lease := filepath.Join(dir, os.Getenv("CNI_CONTAINERID")+"-"+os.Getenv("CNI_IFNAME"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	switch os.Getenv("CNI_COMMAND") {
	case "ADD":
		if err := os.WriteFile(lease, nil, 0o600); err != nil {
			return err
		}
		for hangs() {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println(`{"cniVersion":"1.0.0","ips":[{"address":"10.9.7.7/24"}]}`)
		return nil
	case "DEL":
		err := os.Remove(lease)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return nil
}

func hangs() bool {
	_, err := os.Stat(filepath.Join(dir, "hang"))
	return err == nil
}
