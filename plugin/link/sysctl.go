// SPDX-License-Identifier: Apache-2.0

package link

import (
	"os"
	"strings"
)

// Sysctl reads a key of the namespace, as "net/ipv6/conf/net1/accept_ra", without the final newline. ErrNotFound.
func (c *Conn) Sysctl(key string) (string, error) {
	path, err := sysctlPath(key)
	if err != nil {
		return "", err
	}
	var value []byte
	// /proc/sys/net shows the namespace of the thread that opens the file.
	err = c.enter(func() error {
		value, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return "", translate("read sysctl "+key, err)
	}
	return strings.TrimSpace(string(value)), nil
}

// SetSysctl writes a key of the namespace. ErrNotFound, ErrRefused.
func (c *Conn) SetSysctl(key, value string) error {
	path, err := sysctlPath(key)
	if err != nil {
		return err
	}
	err = c.enter(func() error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(value)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		return err
	})
	return translate("write sysctl "+key, err)
}
