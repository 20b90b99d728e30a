// SPDX-License-Identifier: Apache-2.0

package hint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/podfabric/podfabric/plugin/attach"
)

// Folders and files below Store.Root. Fragments stand apart from what pods are shown, because on a shared port they name other
// pods' addresses and whoever mounts pods/<key> into a container must not hand those over.
const (
	podsDir      = "pods"      // pods/<key>/{fabric.json,nccl.conf}: 0755, read by pods and by the agent
	fragmentsDir = "fragments" // fragments/<key>/<containerID>/<ifname>.json: 0700
	fabricFile   = "fabric.json"
	ncclFile     = "nccl.conf"
)

// pruneWait bounds the wait for the lock of a pod that looks dead.
const pruneWait = 20 * time.Millisecond

// Store keeps the hints of a node's pods. A pod's key is its UID, or the container ID where the runtime gives no UID.
type Store struct {
	Root        string // "/run/podfabric"
	KubeletRoot string // "/var/lib/kubelet"; empty: nothing is written into emptyDirs
	// Lock waits for the lock of that name until ctx ends. The holder is for whoever waits.
	Lock func(ctx context.Context, name, holder string) (release func(), err error)
	// Lives tells whether an attachment is there and its sandbox too; nil: none is. It is asked only where a pod has two sandboxes.
	Lives func(context.Context, attach.Owner) bool
}

// Put adds or replaces one attachment's part and renders the pod's hint from all parts of this fragment's sandbox, which is
// from now on the current one; parts of the one before are dropped. While that one lives the part is kept apart, and a warning says so,
// or ErrUndelivered if the network requires the hint. The warnings are one sentence each. A *netconf.Problem
// that wraps ErrConflict, ErrNoRight or ErrUndelivered says what the networks' own settings forbid; of these only
// ErrUndelivered leaves the part in place.
func (s *Store) Put(ctx context.Context, key string, f Fragment) ([]string, error) {
	if key == "" {
		key = f.Owner.ContainerID
	}
	if err := checkNames(key, f.Owner); err != nil {
		return nil, err
	}
	release, err := s.Lock(ctx, "hint-"+key, f.Owner.String())
	if err != nil {
		return nil, fmt.Errorf("lock hint of pod %s: %w", key, err)
	}
	defer release()
	root, err := s.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()

	return s.put(ctx, root, key, f)
}

func (s *Store) put(ctx context.Context, root *os.Root, key string, f Fragment) ([]string, error) {
	own := f.Owner.ContainerID
	current, waiting, err := sandboxes(root, key)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(current, own) {
		var other string
		if other, err = s.living(ctx, root, current, func(c string) string { return currentDir(key, c) }); err != nil {
			return nil, err
		}
		if other != "" {
			return wait(root, key, f, other)
		}
	}
	before, warnings, err := fragments(root, placeOf(key, own, waiting), own)
	if err != nil {
		return nil, err
	}
	p := merge(append(before.without(f.Owner), f))
	if err = p.check(f); err != nil {
		return nil, err
	}
	files, err := p.render()
	if err != nil {
		return nil, err
	}
	if err = advance(root, key, own, current, waiting); err != nil {
		return nil, err
	}
	if err = keep(root, currentDir(key, own), f); err != nil {
		return nil, err
	}
	err = publish(root, key, files)
	if errors.Is(err, errPlanted) {
		warnings, err = append(warnings, err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, p.decision.Warnings...)
	more, err := s.deliver(ctx, key, p, files)
	return append(warnings, more...), err
}

// Drop takes one attachment's part out and renders the rest. The part of a sandbox that is not the current one shows nowhere. With the
// current one's last part the next that lives becomes the current one; without one, everything of the pod is removed. Dropping what is not there is no error.
func (s *Store) Drop(ctx context.Context, key string, o attach.Owner) error {
	if key == "" {
		key = o.ContainerID
	}
	if err := checkNames(key, o); err != nil {
		return err
	}
	release, err := s.Lock(ctx, "hint-"+key, o.String())
	if err != nil {
		return fmt.Errorf("lock hint of pod %s: %w", key, err)
	}
	defer release()
	root, err := os.OpenRoot(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Root, cause(err))
	}
	defer func() { _ = root.Close() }()
	return s.drop(ctx, root, key, o)
}

func (s *Store) drop(ctx context.Context, root *os.Root, key string, o attach.Owner) error {
	current, waiting, err := sandboxes(root, key)
	if err != nil {
		return err
	}
	if slices.Contains(waiting, o.ContainerID) {
		return s.leave(ctx, root, key, o)
	}
	if len(current) > 0 && !slices.Contains(current, o.ContainerID) {
		return nil
	}
	dir := currentDir(key, o.ContainerID)
	before, _, err := fragments(root, dir, o.ContainerID)
	if err != nil {
		return err
	}
	if err = remove(root, path.Join(dir, o.IfName+".json")); err != nil {
		return err
	}
	left, err := interfaces(root, dir)
	if err != nil {
		return err
	}
	was := merge(before)
	if len(left) == 0 {
		return s.end(ctx, root, key, was, current, waiting)
	}
	p := merge(before.without(o))
	p.volumes, p.hasUID = was.volumes, was.hasUID
	return s.show(ctx, root, key, p)
}

// show renders a hint where the pod changed while it runs, so that nobody can be told what goes wrong.
func (s *Store) show(ctx context.Context, root *os.Root, key string, p pod) error {
	files, err := p.render()
	if err != nil {
		return err
	}
	err = publish(root, key, files)
	p.require = false
	_, _ = s.deliver(ctx, key, p, files)
	if errors.Is(err, errPlanted) {
		return nil
	}
	return err
}

// removePod removes all of a pod. What the pod planted in its folder and cannot be removed stays, without a part: Prune tries again.
func removePod(root *os.Root, key string) error {
	shown := remove(root, path.Join(podsDir, key))
	if errors.Is(shown, syscall.EMFILE) {
		// Either many calls at once, which is over soon, or a tree deeper than a process may have files open.
		shown = remove(root, path.Join(podsDir, key))
	}
	if errors.Is(blame(shown), errPlanted) && !errors.Is(shown, syscall.ENOTDIR) { // that one is of the folder of all pods
		shown = nil
	}
	return errors.Join(shown, remove(root, path.Join(fragmentsDir, key)))
}

// Prune removes what is left of pods none of whose attachments is alive: after a crash, or where a DEL never came.
func (s *Store) Prune(ctx context.Context, alive func(attach.Owner) bool) error {
	root, err := os.OpenRoot(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Root, cause(err))
	}
	defer func() { _ = root.Close() }()
	shown, err := names(root, podsDir)
	if err != nil {
		return err
	}
	kept, err := names(root, fragmentsDir)
	if err != nil {
		return err
	}
	keys := slices.Concat(shown, kept)
	slices.Sort(keys)
	var errs []error
	for _, key := range slices.Compact(keys) {
		if dead, err := allDead(root, key, alive); err != nil || !dead {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, s.prune(ctx, root, key, alive))
	}
	return errors.Join(errs...)
}

// prune looks again under the lock. A pod whose lock is held is being worked on, and not worth a wait.
func (s *Store) prune(ctx context.Context, root *os.Root, key string, alive func(attach.Owner) bool) error {
	ctx, cancel := context.WithTimeout(ctx, pruneWait)
	defer cancel()
	release, err := s.Lock(ctx, "hint-"+key, "prune")
	if err != nil {
		return nil
	}
	defer release()
	if dead, err := allDead(root, key, alive); err != nil || !dead {
		return err
	}
	return removePod(root, key)
}

// allDead tells by file names alone, so that a fragment that cannot be read keeps nothing.
func allDead(root *os.Root, key string, alive func(attach.Owner) bool) (bool, error) {
	all, err := owners(root, key)
	return err == nil && !slices.ContainsFunc(all, alive), err
}
