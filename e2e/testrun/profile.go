// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// profile is how a guest package wants its machine to be booted. It stands in a comment line of its own in one of the
// package's test files; what is not said has the value below.
//
//	//lab:boot pfs=2 vfs=4 mode=exclusive rdmasim=all memory=2048 cpus=2 seconds=300 bin=./e2e/guest/x peers=plugins/macvlan,libcni variants=faults
//
// pfs and vfs are the NICs and the VFs of each; mode is the RDMA namespace mode; rdmasim names the PCI functions that get a
// simulated RDMA device: all, none, or a comma list. bin lists main packages that, like podfabric's own, are to be found on the
// guest's PATH; peers other people's, each a tool of a module below e2e/peers, or such a module's own program. variants lists build
// tags, some joined by a plus: with each the plugin is there once more, as podfabric-TAGS. A package's testdata folder goes along.
type profile struct {
	pfs, vfs, memory, cpus, seconds int
	mode, rdmasim                   string
	bin, peers, variants            []string
}

const directive = "//lab:boot"

var errProfile = errors.New("malformed " + directive)

// parseProfile reads the directive among a file's lines; the flag is false, and the profile the default, if there is none.
func parseProfile(source string) (profile, bool, error) {
	ok := false
	p := profile{pfs: 2, vfs: 4, memory: 2048, cpus: 2, seconds: 300, mode: "exclusive", rdmasim: "all"}
	for line := range strings.Lines(source) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != directive {
			continue
		}
		if ok {
			return p, false, fmt.Errorf("%w: there are two", errProfile)
		}
		ok = true
		for _, f := range fields[1:] {
			if err := p.set(f); err != nil {
				return p, false, err
			}
		}
	}
	return p, ok, nil
}

func (p *profile) set(field string) error {
	key, value, _ := strings.Cut(field, "=")
	numbers := map[string]*int{"pfs": &p.pfs, "vfs": &p.vfs, "memory": &p.memory, "cpus": &p.cpus, "seconds": &p.seconds}
	if n, ok := numbers[key]; ok {
		v, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errProfile, field, err)
		}
		*n = v
		return nil
	}
	switch {
	case key == "mode" && (value == "exclusive" || value == "shared"):
		p.mode = value
	case key == "rdmasim" && value != "":
		p.rdmasim = value
	case key == "bin" && value != "":
		p.bin = strings.Split(value, ",")
	case key == "peers" && value != "":
		p.peers = strings.Split(value, ",")
	case key == "variants" && value != "":
		p.variants = strings.Split(value, ",")
	default:
		return fmt.Errorf("%w: %q", errProfile, field)
	}
	return nil
}

// profileOf finds the directive of a package; the defaults if it has none.
func profileOf(pkg listed) (profile, error) {
	found, _, _ := parseProfile("")
	seen := false
	for _, f := range pkg.testFiles() {
		b, err := os.ReadFile(filepath.Join(pkg.Dir, f))
		if err != nil {
			return found, fmt.Errorf("look for the boot profile: %w", err)
		}
		p, ok, err := parseProfile(string(b))
		switch {
		case err != nil:
			return found, fmt.Errorf("%s/%s: %w", relative(pkg.ImportPath), f, err)
		case ok && seen:
			return found, fmt.Errorf("%s: %w: two files have one", relative(pkg.ImportPath), errProfile)
		case ok:
			found, seen = p, true
		}
	}
	return found, nil
}
