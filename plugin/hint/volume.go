// SPDX-License-Identifier: Apache-2.0

package hint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/podfabric/podfabric/netconf"
)

// deliver writes the files into the pod's emptyDirs. What goes wrong there the pod did to itself, so it is a warning; it is
// an error only when a network requires the hint to arrive. A volume that does not exist is not worth a warning: most pods
// do not ask for the hint.
func (s *Store) deliver(key string, p pod, files []file) ([]string, error) {
	var warnings []string
	var arrived bool
	var why error
	for _, volume := range p.volumes {
		switch err := s.fill(key, volume, p, files); {
		case err == nil:
			arrived = true
		case errors.Is(err, errGone):
			why = err
		default:
			why = err
			warnings = append(warnings, err.Error())
		}
	}
	if !p.require || arrived {
		return warnings, nil
	}
	names := strings.Join(p.volumes, ", ")
	remedy := fmt.Sprintf("give the pod an emptyDir volume named %q, or set hint.require to false", names)
	if why == nil {
		why = errGone
	}
	switch {
	case errors.Is(why, errGone):
	case !errors.Is(why, syscall.ENOSPC) && !errors.Is(why, syscall.EDQUOT):
		remedy = fmt.Sprintf("let nothing but podfabric's files stand in the pod's emptyDir %q, or set hint.require to false", names)
	default:
		remedy = fmt.Sprintf("make room for fabric.json and nccl.conf in the pod's volume %q, or set hint.require to false", names)
	}
	return warnings, &netconf.Problem{
		Code: netconf.CodeHint, Remedy: remedy, Field: "hint.require", Err: fmt.Errorf("%w: %w", ErrUndelivered, why),
	}
}

// fill writes the files into one emptyDir.
func (s *Store) fill(key, volume string, p pod, files []file) error {
	root, err := s.emptyDir(key, volume, p)
	if err != nil {
		return fmt.Errorf("hint is not in the pod's volume %q: %w", volume, err)
	}
	defer func() { _ = root.Close() }()
	var first error
	for _, f := range files {
		if err := replace(root, f.name, f.text, 0o644); err != nil && first == nil {
			first = fmt.Errorf("hint is not in the pod's volume %q: write %s: %w", volume, filepath.Join(root.Name(), f.name), cause(err))
		}
	}
	return first
}

// withdraw takes the files out of the pod's volumes with the last part, so that an ADD that failed leaves none behind. What
// stands in its way the pod put there, and a pod that ends takes it along.
func (s *Store) withdraw(key string, p pod) {
	for _, volume := range p.volumes {
		root, err := s.emptyDir(key, volume, p)
		if err != nil {
			continue
		}
		_ = root.Remove(fabricFile)
		_ = root.Remove(ncclFile)
		_ = root.Close()
	}
}

// emptyDir opens the folder of a volume as a root that nothing leads out of. kubelet has made it before it asks for the
// sandbox. Only the folder itself is the pod's to change, the way to it is kubelet's.
func (s *Store) emptyDir(key, volume string, p pod) (*os.Root, error) {
	switch {
	case s.KubeletRoot == "":
		return nil, fmt.Errorf("no folder of kubelet is known: %w", errGone)
	case !p.hasUID:
		return nil, fmt.Errorf("the runtime gave no pod UID: %w", errGone)
	case volume == "" || volume == "." || volume == ".." || strings.ContainsAny(volume, "/\x00"):
		return nil, fmt.Errorf("volume %q: %w", volume, ErrName)
	}
	kubelet, err := os.OpenRoot(s.KubeletRoot)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.KubeletRoot, cause(err))
	}
	defer func() { _ = kubelet.Close() }()
	dir := path.Join("pods", key, "volumes", "kubernetes.io~empty-dir", volume)
	before, err := kubelet.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", dir, cause(err))
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s is no folder but %s", dir, before.Mode().Type())
	}
	root, err := kubelet.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, cause(err))
	}
	after, err := root.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = fs.ErrInvalid
	}
	if err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("open %s: %w", dir, cause(err))
	}
	return root, nil
}
