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

	"github.com/podfabric/podfabric/plugin/attach"
)

// Dead lists the keys of the pods that Prune would remove: none of their attachments is alive. It writes nothing, but looks at
// each such pod once more under its lock, since a pod that comes or goes looks dead for a moment.
func (s *Store) Dead(ctx context.Context, alive func(attach.Owner) bool) ([]string, error) {
	root, err := os.OpenRoot(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Root, err)
	}
	defer func() { _ = root.Close() }()
	shown, err := names(root, podsDir)
	if err != nil {
		return nil, err
	}
	kept, err := names(root, fragmentsDir)
	if err != nil {
		return nil, err
	}
	keys := slices.Concat(shown, kept)
	slices.Sort(keys)
	var dead []string
	for _, key := range slices.Compact(keys) {
		is, err := allDead(root, key, alive)
		if err == nil && is {
			is, err = s.surelyDead(ctx, root, key, alive)
		}
		if err != nil {
			return nil, err
		}
		if is {
			dead = append(dead, key)
		}
	}
	return dead, nil
}

func (s *Store) surelyDead(ctx context.Context, root *os.Root, key string, alive func(attach.Owner) bool) (bool, error) {
	release, err := s.Lock(ctx, "hint-"+key, "a look")
	if err != nil {
		return false, fmt.Errorf("lock hint of pod %s: %w", key, err)
	}
	defer release()
	_, shown := root.Lstat(path.Join(podsDir, key))
	_, kept := root.Lstat(path.Join(fragmentsDir, key))
	if errors.Is(shown, fs.ErrNotExist) && errors.Is(kept, fs.ErrNotExist) {
		return false, nil // gone meanwhile
	}
	return allDead(root, key, alive)
}

// Parts gives every part of every pod's hint that can be read. It takes no lock: a part is replaced as a whole.
func (s *Store) Parts() ([]Fragment, error) {
	root, err := os.OpenRoot(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Root, cause(err))
	}
	defer func() { _ = root.Close() }()
	keys, err := names(root, fragmentsDir)
	if err != nil {
		return nil, err
	}
	var all []Fragment
	for _, key := range keys {
		current, waiting, err := sandboxes(root, key)
		if err != nil {
			return nil, err
		}
		for _, c := range slices.Concat(current, waiting) {
			parts, _, err := fragments(root, placeOf(key, c, waiting), c)
			if err != nil {
				return nil, err
			}
			all = append(all, parts...)
		}
	}
	return all, nil
}

// Owners lists who has a part of a pod's hint, readable or not.
func (s *Store) Owners(key string) ([]attach.Owner, error) {
	root, err := os.OpenRoot(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", s.Root, cause(err))
	}
	defer func() { _ = root.Close() }()
	return owners(root, key)
}

// PruneOne is Prune of one pod.
func (s *Store) PruneOne(ctx context.Context, key string, alive func(attach.Owner) bool) error {
	root, err := os.OpenRoot(s.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Root, cause(err))
	}
	defer func() { _ = root.Close() }()
	return s.prune(ctx, root, key, alive)
}
