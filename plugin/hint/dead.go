// SPDX-License-Identifier: Apache-2.0

package hint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
)

// Dead lists the keys of the pods that Prune would remove: none of their attachments is alive.
func (s *Store) Dead(alive func(attach.Owner) bool) ([]string, error) {
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
		if err != nil {
			return nil, err
		}
		if is {
			dead = append(dead, key)
		}
	}
	return dead, nil
}
