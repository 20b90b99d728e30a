// SPDX-License-Identifier: Apache-2.0

package hint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/podfabric/podfabric/netconf"
)

// deliver writes the files into the pod's emptyDirs. What goes wrong there the pod did to itself, so it is a warning; it is
// an error only when a network requires the hint to arrive. A volume that does not exist is not worth a warning: most pods
// do not ask for the hint.
func (s *Store) deliver(ctx context.Context, key string, p pod, files []file) ([]string, error) {
	var warnings []string
	var arrived bool
	var why error
	for _, volume := range p.volumes {
		switch err := bounded(ctx, func() error { return s.fill(key, volume, p, files) }); {
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
	if name, err := replaceAll(root, files); err != nil {
		return fmt.Errorf("hint is not in the pod's volume %q: write %s: %w", volume, filepath.Join(s.KubeletRoot, volumeDir(key, volume), name), cause(err))
	}
	return nil
}

// withdraw takes the files out of the pod's volumes with the last part, so that an ADD that failed leaves none behind. What
// stands in its way the pod put there, and a pod that ends takes it along.
func (s *Store) withdraw(ctx context.Context, key string, p pod) {
	for _, volume := range p.volumes {
		_ = bounded(ctx, func() error {
			root, err := s.emptyDir(key, volume, p)
			if err != nil {
				return err
			}
			return errors.Join(root.Remove(fabricFile), root.Remove(ncclFile), root.Close())
		})
	}
}

// volumeWait bounds the wait for one volume. A file system that a pod has mounted there, and that does not answer, must cost no
// more than the hint.
const volumeWait = 2 * time.Second

// errSilent: a volume's file system did not answer in time.
var errSilent = errors.New("its file system does not answer")

// bounded leaves f behind when it takes too long. A thread that waits for a file system ends with the process; f may still write
// into the volume until then, and nowhere else.
func bounded(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, volumeWait)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errSilent
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
	return enter(kubelet, volumeDir(key, volume))
}

// volumeDir is where kubelet keeps an emptyDir, below its folder.
func volumeDir(key, volume string) string {
	return path.Join("pods", key, "volumes", "kubernetes.io~empty-dir", volume)
}

// enter opens a folder as a root that nothing leads out of, whose Name says nothing. What is no folder, a link to one too, is not
// opened.
func enter(above *os.Root, dir string) (*os.Root, error) {
	before, err := above.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", dir, cause(err))
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s is no folder but %s: %w", dir, before.Mode().Type(), syscall.ENOTDIR)
	}
	// Not by OpenRoot alone: that opens what stands there like a file, and if it is a fifo by now, for ever.
	held, err := above.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, cause(err))
	}
	defer func() { _ = held.Close() }()
	after, err := held.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = syscall.ENOTDIR // put there since we looked
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, cause(err))
	}
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", held.Fd()))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, cause(err))
	}
	return root, nil
}
