// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/podfabric/podfabric/plugin/attach"
)

// Leftover is what a process left in the store that was killed while it wrote.
type Leftover struct {
	Path string // absolute
	Why  string
	// Owner says whose lock keeps others from writing there; zero: its age alone tells that nobody does.
	Owner attach.Owner

	name string // below the store's folder
}

const cutShort = "a write that was cut short left it"

// Leftovers lists what was left and last changed before that moment: files of writes that were cut short, folders without a
// record, a claim that was on its way.
func (s *Store) Leftovers(before time.Time) ([]Leftover, error) {
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closeRoot(root)
	var out []Leftover
	add := func(l Leftover) {
		if stat, statErr := root.Lstat(l.name); statErr == nil && stat.ModTime().Before(before) {
			l.Path = s.path(l.name)
			out = append(out, l)
		}
	}
	if err = s.leftAttachments(root, add); err != nil {
		return nil, err
	}
	var names []string
	for _, folder := range []string{namesDir, outDir} {
		if names, err = s.names(root, folder); err != nil {
			return nil, err
		}
		for _, name := range names {
			if unfinished(name) != "" {
				add(Leftover{name: path.Join(folder, name), Why: cutShort})
			}
		}
	}
	names, err = s.names(root, ".")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == probeFile || unfinished(name) == probeFile {
			add(Leftover{name: name, Why: cutShort})
		}
	}
	add(Leftover{name: newClaim, Why: "a claim that was on its way to replace another"})
	return out, nil
}

func (s *Store) leftAttachments(root *os.Root, add func(Leftover)) error {
	ids, err := s.names(root, attachmentsDir)
	if err != nil {
		return err
	}
	for _, id := range ids {
		folder := path.Join(attachmentsDir, id)
		files, err := s.names(root, folder)
		if errors.Is(err, ErrUnreadable) {
			continue // no folder; List tells
		}
		if err != nil {
			return err
		}
		if len(files) == 0 {
			add(Leftover{name: folder, Why: "a folder without a record"})
		}
		for _, file := range files {
			if name, ok := strings.CutSuffix(unfinished(file), suffix); ok {
				add(Leftover{name: path.Join(folder, file), Owner: attach.Owner{ContainerID: id, IfName: name}, Why: cutShort})
			}
		}
	}
	return nil
}

// unfinished gives the name of the file that one under a temporary name was to become (statedir.IsTemporary); empty when it is none.
func unfinished(name string) string {
	rest, ok := strings.CutPrefix(name, ".")
	target := strings.TrimRight(rest, "0123456789")
	if !ok || target == rest {
		return ""
	}
	return target
}

// Clear removes what Leftovers listed, under the lock that it names. A folder that is no longer empty stays, and what is gone is no
// error.
func (s *Store) Clear(l Leftover) error {
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeRoot(root)
	if l.name == newClaim {
		unlock, lockErr := s.lockClaims(root)
		if lockErr != nil {
			return lockErr
		}
		defer unlock()
	}
	err = s.remove(root, l.name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
