// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/podfabric/podfabric/rdmans"
)

const (
	// modeFile is the one file that NVIDIA's driver container takes from the host, by this very name.
	modeFile = "/etc/modprobe.d/ib_core.conf"
	// snoFile is where the SR-IOV network operator writes the same option.
	snoFile = "sriov_network_operator_modules_config.conf"
	// machineConfig is the state of OpenShift's machine config daemon.
	machineConfig  = "/etc/machine-config-daemon/currentconfig"
	kernelArgument = "ib_core.netns_mode"
	option         = "netns_mode"
	unclear        = "unclear"
)

// modprobeDirs are read by modprobe.d(5); a file hides those of its name in the folders after it.
func modprobeDirs() []string {
	return []string{"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"}
}

// setting is one place that says which mode the next boot has.
type setting struct {
	Source string `json:"source"` // path of a file, or "kernel argument"
	Owner  string `json:"owner"`  // podfabric, SR-IOV network operator, operator
	Mode   string `json:"mode"`   // exclusive, shared, or unclear for a value that is neither
}

const (
	ownerUs       = "podfabric"
	ownerSNO      = "SR-IOV network operator"
	ownerOperator = "operator"
	sourceKernel  = "kernel argument"
)

// persistent reads what will set the mode at the next boot: files in the order in which modprobe reads them, the last one counts,
// then the kernel's arguments.
func persistent(root string) ([]setting, error) {
	files := map[string]string{}
	for _, dir := range modprobeDirs() {
		names, err := filepath.Glob(filepath.Join(root, dir, "*.conf"))
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
		for _, name := range names {
			if base := filepath.Base(name); files[base] == "" {
				files[base] = filepath.Join(dir, base)
			}
		}
	}
	bases := make([]string, 0, len(files))
	for base := range files {
		bases = append(bases, base)
	}
	slices.Sort(bases)
	out := []setting{}
	for _, base := range bases {
		text, err := os.ReadFile(filepath.Join(root, files[base]))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a link to nowhere masks a file and says nothing
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", files[base], err)
		}
		if value, ok := optionOf(string(text)); ok {
			out = append(out, setting{Source: files[base], Owner: ownerOfFile(files[base]), Mode: modeOf(value)})
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "/proc/cmdline"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the kernel's arguments: %w", err)
	}
	if value, ok := argumentOf(string(text)); ok {
		out = append(out, setting{Source: sourceKernel, Owner: ownerOperator, Mode: modeOf(value)})
	}
	return out, nil
}

func ownerOfFile(path string) string {
	switch {
	case path == modeFile:
		return ownerUs
	case filepath.Base(path) == snoFile:
		return ownerSNO
	}
	return ownerOperator
}

// optionOf reads the last netns_mode of "options ib_core ..." in a file of modprobe.d(5).
func optionOf(text string) (string, bool) {
	value, found := "", false
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		words := strings.Fields(line)
		if !isOptions(words) {
			continue
		}
		for _, word := range words[2:] {
			if v, ok := strings.CutPrefix(word, option+"="); ok {
				value, found = v, true
			}
		}
	}
	return value, found
}

// isOptions tells whether a line sets options of ib_core. In names of modules - and _ are the same.
func isOptions(words []string) bool {
	return len(words) > 2 && words[0] == "options" && strings.ReplaceAll(words[1], "-", "_") == "ib_core"
}

// argumentOf reads the last ib_core.netns_mode of the kernel's arguments.
func argumentOf(cmdline string) (string, bool) {
	value, found := "", false
	for word := range strings.FieldsSeq(cmdline) {
		name, v, ok := strings.Cut(word, "=")
		if ok && strings.ReplaceAll(name, "-", "_") == kernelArgument {
			value, found = strings.Trim(v, `"`), true
		}
	}
	return value, found
}

// modeOf reads a boolean as the kernel does (kstrtobool).
func modeOf(value string) string {
	switch value {
	case "0", "n", "N", "off", "no":
		return string(rdmans.Exclusive)
	case "1", "y", "Y", "on", "yes":
		return string(rdmans.Shared)
	}
	return unclear
}

// number is the value of the option for a mode.
func number(m rdmans.Mode) string {
	if m == rdmans.Exclusive {
		return "0"
	}
	return "1"
}

// nextBoot is the mode that the settings come to.
func nextBoot(list []setting) string {
	mode := string(rdmans.Shared) // the kernel's own default
	for i, s := range list {
		if s.Source == sourceKernel && i > 0 && s.Mode != mode {
			return unclear
		}
		mode = s.Mode
	}
	return mode
}

// modeText is the file that sets the mode, made from the one that is there: other options and comments in it stay.
func modeText(old string, m rdmans.Mode) string {
	const head = "# RDMA namespace mode, 0 exclusive, 1 shared; written by podfabricctl mode set"
	lines := []string{}
	for line := range strings.SplitSeq(strings.ReplaceAll(old, "\\\n", " "), "\n") {
		line = strings.TrimRight(line, "\\ \t") // a line that the end of the file cuts off must not go on with ours
		words := strings.Fields(line)
		if line == head || len(words) == 0 {
			continue
		}
		if isOptions(words) {
			words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, option+"=") })
			if len(words) == 2 {
				continue
			}
			line = strings.Join(words, " ")
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, head, "options ib_core "+option+"="+number(m)), "\n") + "\n"
}

// writeMode replaces the file at once. It tells whether anything was to change.
func writeMode(root string, m rdmans.Mode, dry bool) (bool, error) {
	name := filepath.Join(root, modeFile)
	info, err := os.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		return false, fmt.Errorf("write %s: remove what stands there, it is no regular file", modeFile)
	}
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read %s: %w", modeFile, err)
	}
	text := modeText(string(old), m)
	if value, ok := optionOf(string(old)); ok && modeOf(value) == string(m) {
		return false, nil
	}
	if dry {
		return true, nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, fmt.Errorf("make the folder of %s: %w", modeFile, err)
	}
	if err := renameio.WriteFile(name, []byte(text), 0o644, renameio.WithStaticPermissions(0o644)); err != nil {
		return false, fmt.Errorf("write %s: %w", modeFile, err)
	}
	return true, nil
}

// managed tells whether OpenShift's machine configuration sets the mode.
func managed(root string) (bool, error) {
	text, err := os.ReadFile(filepath.Join(root, machineConfig))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", machineConfig, err)
	}
	return bytes.Contains(text, []byte(option)) || bytes.Contains(text, []byte(filepath.Base(modeFile))), nil
}
