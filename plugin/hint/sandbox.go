// SPDX-License-Identifier: Apache-2.0

package hint

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
)

// A pod has one hint and may have two sandboxes for a while: one that the runtime has given up and works on still, or has not deleted
// yet. Nothing that CNI says tells which of them is the older. The first that came is the current one as long as it lives: a
// container that runs keeps the hint that it began with, whatever comes late. The parts of the others are kept apart, so that
// each DEL takes its own, and the DEL of the current one shows those of the next. An older podfabric takes waitingDir for a sandbox
// without parts, and removes it with the next of its own.

// waitingDir is where the parts of the others are, below the pod's fragments: .waiting/<containerID>/<ifname>.json. CNI has no container ID
// that begins with a dot.
const waitingDir = ".waiting"

// sandboxes of one pod that have parts: the current one, more only after a crash, and those that wait.
func sandboxes(root *os.Root, key string) (current, waiting []string, err error) { //nolint:nonamedreturns // tells them apart
	current, err = names(root, path.Join(fragmentsDir, key))
	if err != nil || !slices.Contains(current, waitingDir) {
		return current, nil, err
	}
	waiting, err = names(root, path.Join(fragmentsDir, key, waitingDir))
	return slices.DeleteFunc(current, func(c string) bool { return c == waitingDir }), waiting, err
}

func currentDir(key, container string) string { return path.Join(fragmentsDir, key, container) }

func waitDir(key, container string) string {
	return path.Join(fragmentsDir, key, waitingDir, container)
}

// placeOf is where a sandbox has its parts that waits or does not.
func placeOf(key, container string, waiting []string) string {
	if slices.Contains(waiting, container) {
		return waitDir(key, container)
	}
	return currentDir(key, container)
}

// living gives the first of some sandboxes, which have their parts in the folders that dir names, that has an attachment which lives; empty:
// none has.
func (s *Store) living(ctx context.Context, root *os.Root, containers []string, dir func(container string) string) (string, error) {
	if s.Lives == nil {
		return "", nil
	}
	for _, c := range containers {
		ifnames, err := interfaces(root, dir(c))
		if err != nil {
			return "", err
		}
		for _, ifname := range ifnames {
			if s.Lives(ctx, attach.Owner{ContainerID: c, IfName: ifname}) {
				return c, nil
			}
		}
	}
	return "", nil
}

// wait keeps a part apart while the sandbox other is the current one. The networks' settings hold for it all the same.
func wait(root *os.Root, key string, f Fragment, other string) ([]string, error) {
	dir := waitDir(key, f.Owner.ContainerID)
	own, warnings, err := fragments(root, dir, f.Owner.ContainerID)
	if err != nil {
		return nil, err
	}
	p := merge(append(own.without(f.Owner), f))
	if err = p.check(f); err != nil {
		return nil, err
	}
	for _, d := range []string{currentDir(key, ""), currentDir(key, waitingDir), dir} {
		if err = folder(root, d, 0o700); err != nil {
			return nil, err
		}
	}
	if err = keep(root, dir, f); err != nil {
		return nil, err
	}
	const why = "the pod's hint is that of its other sandbox, container %s, until that is deleted"
	if p.require {
		return warnings, &netconf.Problem{
			Code: netconf.CodeHint, Remedy: "delete the pod's other sandbox first, as the runtime does when it tries again", Field: "hint.require",
			Err: fmt.Errorf(why+": %w", other, ErrUndelivered),
		}
	}
	return append(warnings, fmt.Sprintf(why, other)), nil
}

// advance makes a sandbox the current one: those that were are dropped first, since of two nobody could tell after a crash which it is.
func advance(root *os.Root, key, container string, current, waiting []string) error {
	for _, old := range current {
		if old == container {
			continue
		}
		if err := remove(root, currentDir(key, old)); err != nil {
			return err
		}
	}
	if slices.Contains(waiting, container) {
		if err := root.Rename(waitDir(key, container), currentDir(key, container)); err != nil {
			return unwritable(root, currentDir(key, container), err)
		}
		_ = root.Remove(currentDir(key, waitingDir)) // unless another waits
		return nil
	}
	for _, d := range []string{currentDir(key, ""), currentDir(key, container)} {
		if err := folder(root, d, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// leave drops a part of a sandbox that waits.
func (s *Store) leave(ctx context.Context, root *os.Root, key string, o attach.Owner) error {
	dir := waitDir(key, o.ContainerID)
	if err := remove(root, path.Join(dir, o.IfName+".json")); err != nil {
		return err
	}
	left, err := interfaces(root, dir)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		if err = remove(root, dir); err != nil {
			return err
		}
		_ = root.Remove(currentDir(key, waitingDir)) // unless another waits
	}
	current, waiting, err := sandboxes(root, key)
	if err != nil || len(current) > 0 {
		return err
	}
	return s.end(ctx, root, key, pod{}, nil, waiting) // a crash came before the next one was the current one
}

// end takes the hint back of a pod whose current sandbox has no part any more, and shows that of the next. was is what it showed.
func (s *Store) end(ctx context.Context, root *os.Root, key string, was pod, current, waiting []string) error {
	next, err := s.living(ctx, root, waiting, func(c string) string { return waitDir(key, c) })
	if err != nil {
		return err
	}
	if next == "" {
		s.withdraw(ctx, key, was)
		return removePod(root, key)
	}
	if err = advance(root, key, next, current, waiting); err != nil {
		return err
	}
	all, _, err := fragments(root, currentDir(key, next), next)
	if err != nil {
		return err
	}
	p := merge(all)
	was.volumes = slices.DeleteFunc(was.volumes, func(v string) bool { return slices.Contains(p.volumes, v) })
	s.withdraw(ctx, key, was)
	return s.show(ctx, root, key, p)
}

// owners lists who has a part of a pod's hint, by file names alone.
func owners(root *os.Root, key string) ([]attach.Owner, error) {
	current, waiting, err := sandboxes(root, key)
	if err != nil {
		return nil, err
	}
	dirs := make([]string, 0, len(current)+len(waiting))
	for _, c := range current {
		dirs = append(dirs, currentDir(key, c))
	}
	for _, c := range waiting {
		dirs = append(dirs, waitDir(key, c))
	}
	var all []attach.Owner
	for _, dir := range dirs {
		ifnames, err := interfaces(root, dir)
		if err != nil {
			return nil, err
		}
		for _, ifname := range ifnames {
			all = append(all, attach.Owner{ContainerID: path.Base(dir), IfName: ifname})
		}
	}
	return all, nil
}
