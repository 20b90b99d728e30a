// SPDX-License-Identifier: Apache-2.0

// Package bus holds the identity of a device that can be given to a pod as a value: a PCI function, or a sub-function, which is
// a device of the auxiliary bus. Netdevs and RDMA devices come and go under any name; this stays. It reads no files.
package bus

import (
	"errors"
	"fmt"
	"strings"

	"github.com/podfabric/podfabric/rdmans/pci"
)

// ErrSyntax is wrapped by every error of Parse.
var ErrSyntax = errors.New("neither a PCI address nor a sub-function of the form driver.sf.N")

// ID names a device. It is comparable, and exactly one field is set, but in the zero value, which stands for "no device".
type ID struct {
	PCI pci.Addr // of a PCI function
	Aux string   // of a sub-function, its name below /sys/bus/auxiliary/devices: "mlx5_core.sf.4"
}

// PCI gives the identity of a PCI function.
func PCI(a pci.Addr) ID { return ID{PCI: a} }

// Parse reads either form.
func Parse(s string) (ID, error) {
	if IsSF(s) {
		return ID{Aux: s}, nil
	}
	a, err := pci.Parse(s)
	if err != nil || a.IsZero() {
		return ID{}, fmt.Errorf("%q: %w", s, ErrSyntax)
	}
	return ID{PCI: a}, nil
}

// maxName bounds the name of an auxiliary device, which becomes a file name; the kernel's longest are below 32 bytes.
const maxName = 64

// IsSF tells whether s is the name of a sub-function on the auxiliary bus (Documentation/networking/devlink/devlink-port.rst).
func IsSF(s string) bool {
	driver, number, ok := strings.Cut(s, ".sf.")
	return ok && len(s) <= maxName && word(driver, "abcdefghijklmnopqrstuvwxyz0123456789_") && word(number, "0123456789")
}

func word(s, letters string) bool {
	return s != "" && strings.Trim(s, letters) == ""
}

// String gives the form of sysfs; that of the zero value is a PCI address of zeros.
func (id ID) String() string {
	if id.Aux != "" {
		return id.Aux
	}
	return id.PCI.String()
}

// IsZero tells whether id is the zero value.
func (id ID) IsZero() bool { return id == ID{} }

// SF tells whether the device is a sub-function.
func (id ID) SF() bool { return id.Aux != "" }

// MarshalText makes JSON hold the form of sysfs; the zero value becomes the empty string.
func (id ID) MarshalText() ([]byte, error) {
	if id.IsZero() {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText is Parse, with the empty string for the zero value.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ID{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
