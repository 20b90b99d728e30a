// SPDX-License-Identifier: Apache-2.0

// Package nccl holds what is known of NCCL's own behaviour: which names its device filter takes, which GID its scan picks, how
// its configuration file is read, each by version. From that it decides which settings a pod needs and writes them. It is
// pure: it reads no file, no environment and no clock, so that every statement in it can be compared with the library.
package nccl

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Sentinels of this package.
var (
	// ErrVersion is wrapped when a text is not a version of NCCL.
	ErrVersion = errors.New("not an NCCL version of the form 2.21 or 2.21.5")
	// ErrUnwritable is wrapped when something cannot stand in nccl.conf such that every version reads it as it was meant.
	ErrUnwritable = errors.New("cannot stand in nccl.conf")
)

// Version of NCCL, as its first log line prints it. The patch is 0 where only "2.21" is known.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads "2.21" or "2.21.5". Versions before 2.0 did not read IB settings from a file and are refused.
func ParseVersion(s string) (Version, error) {
	parts := strings.Split(s, ".")
	if len(parts) < 2 || len(parts) > 3 {
		return Version{}, fmt.Errorf("%q: %w", s, ErrVersion)
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 16)
		if err != nil || strconv.FormatUint(v, 10) != p {
			return Version{}, fmt.Errorf("%q: %w", s, ErrVersion)
		}
		n[i] = int(v)
	}
	if n[0] != 2 {
		return Version{}, fmt.Errorf("%q: %w", s, ErrVersion)
	}
	return Version{n[0], n[1], n[2]}, nil
}

// String gives the form that ParseVersion reads.
func (v Version) String() string {
	if v.Patch == 0 {
		return fmt.Sprintf("%d.%d", v.Major, v.Minor)
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Compare orders versions as cmp.Compare does.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor), cmp.Compare(v.Patch, o.Patch))
}

// Before tells whether v is older than major.minor.
func (v Version) Before(major, minor int) bool {
	return v.Compare(Version{Major: major, Minor: minor}) < 0
}

// Generations lists one release of each way in which NCCL has chosen GIDs and read its file, oldest first. A setting that is
// right for all of these from some version on is right for every release from there on that has been published.
func Generations() []Version {
	return []Version{{2, 20, 5}, {2, 21, 5}, {2, 23, 4}, {2, 26, 2}, {2, 30, 7}}
}

// From lists the versions over which a setting must be tried when oldest is the oldest in use: that one and every later
// generation.
func From(oldest Version) []Version {
	list := []Version{oldest}
	for _, g := range Generations() {
		if g.Compare(oldest) > 0 {
			list = append(list, g)
		}
	}
	return list
}
