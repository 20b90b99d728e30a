// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// Store is a folder of records. Its methods may be called by any number of processes at once; that one attachment is worked
// on by one of them at a time is the caller's lock.
type Store struct{ dir string }

// New gives the store in dir, /run/podfabric on a node. The first Save makes the folder when it is missing; its parent must
// exist.
func New(dir string) *Store { return &Store{dir} }

// recordMax bounds what is read of a file that stands in a record's place, in bytes.
const recordMax = 4 << 20

// saveTries is how often the folder of a container may vanish, when the last other record in it is dropped, before Save
// gives up.
const saveTries = 10

// Save writes the record, or replaces it, at once. The error wraps ErrUnwritable or ErrOwner.
func (s *Store) Save(r Record) error {
	if err := checkOwner(r.Owner); err != nil {
		return err
	}
	text, err := encode(r)
	if err != nil {
		return err
	}
	root, err := s.write()
	if err != nil {
		return err
	}
	defer closeRoot(root)
	for try := 1; ; try++ {
		err := s.save(root, r.Owner, text)
		if !missing(err) || try == saveTries {
			return err
		}
	}
}

// missing tells whether a folder was not there. By the time that one looks, another may have made it again.
func missing(err error) bool {
	e := (*statedir.UnwritableError)(nil)
	return errors.As(err, &e) && e.Err == nil
}

func (s *Store) save(root *os.Root, o attach.Owner, text []byte) error {
	for _, folder := range []string{attachmentsDir, folderOf(o)} {
		if err := statedir.Make(root, folder); err != nil {
			return err
		}
	}
	err := statedir.Write(root, fileOf(o), text)
	if err != nil {
		s.sweep(root, o)
	}
	return err
}

// sweep removes what a Save that failed may have left of a first record. What it cannot remove, Drop does.
func (s *Store) sweep(root *os.Root, o attach.Owner) {
	if files, err := s.names(root, folderOf(o)); err == nil {
		_ = s.removeTemporary(root, o, files)
		_ = s.remove(root, folderOf(o)) // fails if a record is in it
	}
}

// removeTemporary removes what is left of writes of a record that were cut short.
func (s *Store) removeTemporary(root *os.Root, o attach.Owner, files []string) error {
	for _, file := range files {
		if statedir.IsTemporary(file, o.IfName+suffix) {
			if err := s.remove(root, path.Join(folderOf(o), file)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Load reads the record of an attachment. The error wraps ErrNotFound when there is none and ErrUnreadable when what stands
// there is no record of it.
func (s *Store) Load(o attach.Owner) (Record, error) {
	if err := checkOwner(o); err != nil {
		return Record{}, err
	}
	root, err := s.read()
	if err != nil {
		return Record{}, err
	}
	defer closeRoot(root)
	r, err := s.load(root, o)
	s.tell(root, []error{err})
	return r, err
}

func (s *Store) load(root *os.Root, o attach.Owner) (Record, error) {
	text, err := s.readFile(root, fileOf(o))
	if err != nil {
		return Record{}, err
	}
	r, err := Decode(text)
	switch {
	case err != nil:
		return Record{}, s.unreadable(o, text, err)
	case r.Owner != o:
		return Record{}, s.unreadable(o, nil, errors.New("it is the record of another attachment, "+r.Owner.String()))
	}
	return r, nil
}

// KindOf gives the kind that a record names, also one that cannot be read, as far as it is JSON; empty: nothing tells. It is for
// whoever has to do without the rest.
func (s *Store) KindOf(o attach.Owner) netconf.Kind {
	if checkOwner(o) != nil {
		return ""
	}
	root, err := s.read()
	if err != nil {
		return ""
	}
	defer closeRoot(root)
	text, err := s.readFile(root, fileOf(o))
	if err != nil {
		return ""
	}
	var r struct {
		Kind netconf.Kind `json:"kind"`
	}
	_ = json.Unmarshal(text, &r) // whatever else is wrong with it
	return r.Kind
}

// readFile reads a regular file that no symbolic link leads to.
func (s *Store) readFile(root *os.Root, name string) ([]byte, error) {
	for part := path.Dir(name); part != "."; part = path.Dir(part) {
		if err := s.expect(root, part, fs.ModeDir); err != nil {
			return nil, err
		}
	}
	if err := s.expect(root, name, 0); err != nil {
		return nil, err
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, s.readError(name, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, recordMax+1))
	if err != nil {
		return nil, s.readError(name, err)
	}
	if len(text) > recordMax {
		return nil, &UnreadableError{File: s.path(name), Reason: fmt.Sprintf("it is larger than %d bytes", recordMax)}
	}
	return text, nil
}

func (s *Store) expect(root *os.Root, name string, kind fs.FileMode) error {
	stat, err := root.Lstat(name)
	if err != nil {
		return s.readError(name, err)
	}
	if stat.Mode().Type() != kind {
		return &UnreadableError{File: s.path(name), Reason: "it is of the wrong kind (" + stat.Mode().Type().String() + ")"}
	}
	return nil
}

// readError translates what a system call on name returned. Only absence is ErrNotFound.
func (s *Store) readError(name string, err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", s.path(name), ErrNotFound)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EISDIR):
		return &UnreadableError{File: s.path(name), Reason: "something on the way to it is of the wrong kind"}
	case errors.As(err, &errno):
		return fmt.Errorf("read %s: %w", s.path(name), errno)
	}
	return fmt.Errorf("read %s: %w", s.path(name), err)
}

// List gives every record, by container and interface, and an error for each thing that is none.
func (s *Store) List() ([]Record, []error) {
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{err}
	}
	defer closeRoot(root)
	ids, err := s.names(root, attachmentsDir)
	if err != nil {
		return nil, []error{err}
	}
	var records []Record
	var errs []error
	for _, id := range ids {
		files, err := s.names(root, path.Join(attachmentsDir, id))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, file := range files {
			r, err := s.listed(root, id, file)
			switch {
			case err == nil:
				records = append(records, r)
			case !errors.Is(err, ErrNotFound): // else dropped while we read
				errs = append(errs, err)
			}
		}
	}
	s.tell(root, errs)
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Owner.ContainerID, b.Owner.ContainerID), cmp.Compare(a.Owner.IfName, b.Owner.IfName))
	})
	return records, errs
}

func (s *Store) listed(root *os.Root, id, file string) (Record, error) {
	name, ok := strings.CutSuffix(file, suffix)
	if ok {
		return s.load(root, attach.Owner{ContainerID: id, IfName: name})
	}
	if strings.HasPrefix(file, ".") {
		return Record{}, ErrNotFound // a write under way, or cut short
	}
	return Record{}, &UnreadableError{File: s.path(path.Join(attachmentsDir, id, file)), Reason: "its name is not a record's"}
}

// Drop forgets an attachment: first its claim on dev, then its record, then the container's folder when it is empty. What
// is gone already is no error, and so is a claim that is another's. A zero dev stands for every claim of the owner.
func (s *Store) Drop(o attach.Owner, dev bus.ID) error {
	if err := checkOwner(o); err != nil {
		return err
	}
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeRoot(root)
	if err = s.unclaim(root, o, dev); err != nil {
		return err
	}
	files, err := s.names(root, folderOf(o))
	if errors.Is(err, ErrUnreadable) {
		return s.remove(root, folderOf(o)) // no folder, so it holds nobody's record; a link there is not followed
	}
	if err != nil {
		return err
	}
	if err := s.remove(root, fileOf(o)); err != nil {
		return err
	}
	if err := s.removeTemporary(root, o, files); err != nil {
		return err
	}
	if err := s.remove(root, folderOf(o)); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
}

// remove removes a file, a link or an empty folder; what is gone is removed.
func (s *Store) remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return statedir.Explain(s.dir, s.path(name), err)
	}
	return nil
}

// names lists a folder, sorted; one that is not there has none.
func (s *Store) names(root *os.Root, folder string) ([]string, error) {
	err := s.expect(root, folder, fs.ModeDir)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := root.Open(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, s.readError(folder, err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed since it was opened
	}
	if err != nil {
		return nil, s.readError(folder, err)
	}
	slices.Sort(names)
	return names, nil
}

// write opens the folder to change something, read to look.
func (s *Store) write() (*os.Root, error) {
	return statedir.Open(s.dir, 0o755)
}

func (s *Store) read() (*os.Root, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, s.readError("", err)
	}
	return root, nil
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

func closeRoot(root *os.Root) { _ = root.Close() }
