// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"io/fs"
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
		var readErr error
		value, readErr = os.ReadFile(path)
		return translate("read sysctl "+key, readErr)
	})
	return strings.TrimSpace(string(value)), err
}

// SetSysctl writes a key of the namespace. ErrNotFound, ErrRefused.
func (c *Conn) SetSysctl(key, value string) error {
	path, err := sysctlPath(key)
	if err != nil {
		return err
	}
	return c.enter(func() error {
		f, openErr := os.OpenFile(path, os.O_WRONLY, 0)
		if openErr != nil {
			return translate("write sysctl "+key, openErr)
		}
		_, writeErr := f.WriteString(value)
		return translate("write sysctl "+key, errors.Join(writeErr, f.Close()))
	})
}

// readTree reads the files of each folder in a folder. What goes away meanwhile is left out, and so is a family that the kernel
// does not have.
func readTree(dir, key string, values map[string]string) error {
	links, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return translate("read sysctls", err)
	}
	for _, l := range links {
		files, err := os.ReadDir(dir + "/" + l.Name())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return translate("read sysctls", err)
		}
		for _, f := range files {
			value, err := os.ReadFile(dir + "/" + l.Name() + "/" + f.Name())
			if err != nil {
				continue
			}
			values[key+"/"+l.Name()+"/"+f.Name()] = strings.TrimSpace(string(value))
		}
	}
	return nil
}
