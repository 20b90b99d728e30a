// SPDX-License-Identifier: Apache-2.0

package hint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/statedir"
)

// errGone stands for ENOENT in texts: Multus takes an error with the kernel's words for it as a success of DEL.
var errGone = errors.New("it is not there")

// cause gives an error that may stand in a CNI result.
func cause(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errGone
	}
	return err
}

// unwritable says what a change of a file below root failed of, and what to do.
func unwritable(root *os.Root, name string, err error) error {
	return statedir.Explain(root.Name(), filepath.Join(root.Name(), name), err)
}

// unreadable says what a look at a file below root failed of.
func unreadable(root *os.Root, name string, err error) error {
	errno, ok := errors.AsType[syscall.Errno](err)
	switch {
	case errno == syscall.ENOTDIR, errno == syscall.ELOOP:
		return unwritable(root, name, err) // to be mended, not only looked at
	case ok && errno != syscall.ENOENT:
		err = errno
	}
	return fmt.Errorf("read %s: %w", filepath.Join(root.Name(), name), cause(err))
}

// checkNames refuses names that would leave their folder. CNI's own rules allow none of these; the names come from outside.
func checkNames(key string, o attach.Owner) error {
	for _, name := range []string{key, o.ContainerID, o.IfName} {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return fmt.Errorf("keep hint of %q: %q: %w", o.String(), name, ErrName)
		}
	}
	return nil
}

// open makes the folders that do not exist yet and gives the root.
func (s *Store) open() (*os.Root, error) {
	root, err := statedir.Open(s.Root, 0o755)
	if err != nil {
		return nil, err
	}
	if err = folder(root, podsDir, 0o755); err == nil {
		err = folder(root, fragmentsDir, 0o700)
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

// folder makes one folder, with its mode whatever the umask is.
func folder(root *os.Root, name string, mode os.FileMode) error {
	err := root.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = root.Chmod(name, mode)
	}
	return unwritable(root, name, err)
}

// names lists a folder; one that does not exist is empty.
func names(root *os.Root, dir string) ([]string, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(root, dir, err)
	}
	defer func() { _ = f.Close() }()
	list, err := f.Readdirnames(-1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed since it was opened
	}
	if err != nil {
		return nil, unreadable(root, dir, err)
	}
	slices.Sort(list)
	return list, nil
}

func remove(root *os.Root, name string) error {
	return unwritable(root, name, root.RemoveAll(name))
}

const tempPrefix = ".podfabric-"

// replace writes a file beside its name and renames it, all within root. It opens neither what stands at the name nor what
// stands at the temporary one, which is fixed so that a killed writer leaves one file at most.
func replace(root *os.Root, name string, data []byte, mode os.FileMode) error {
	temp := path.Join(path.Dir(name), tempPrefix+path.Base(name))
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err //nolint:wrapcheck // the caller says what it was about
	}
	err := create(root, temp, data, mode)
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp)
	}
	return err //nolint:wrapcheck // see above
}

func create(root *os.Root, name string, data []byte, mode os.FileMode) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err //nolint:wrapcheck // replace says what it was about
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// list of fragments of one sandbox.
type list []Fragment

func (l list) without(o attach.Owner) list {
	return slices.DeleteFunc(slices.Clone(l), func(f Fragment) bool { return f.Owner == o })
}

// interfaces lists those that have a part in a sandbox's folder, by file names alone.
func interfaces(root *os.Root, dir string) ([]string, error) {
	files, err := names(root, dir)
	if err != nil {
		return nil, err
	}
	var ifnames []string
	for _, file := range files {
		if ifname, ok := strings.CutSuffix(file, ".json"); ok && !strings.HasPrefix(file, tempPrefix) {
			ifnames = append(ifnames, ifname)
		}
	}
	return ifnames, nil
}

// fragmentMax bounds what is read of a fragment, in bytes: the largest GID table of a shared port fills a tenth of it.
const fragmentMax = 4 << 20

// fragments reads those of one sandbox out of its folder. One that cannot be read is left out with a warning: it costs the pod a rail in the
// hint, an error would cost it the pod.
func fragments(root *os.Root, dir, container string) (list, []string, error) {
	ifnames, err := interfaces(root, dir)
	if err != nil {
		return nil, nil, err
	}
	var all list
	var warnings []string
	for _, ifname := range ifnames {
		name := path.Join(dir, ifname+".json")
		text, err := statedir.Read(root, name, fragmentMax)
		if errors.Is(err, fs.ErrNotExist) {
			continue // dropped since it was listed, for those who hold no lock
		}
		if err != nil && !errors.Is(err, statedir.ErrKind) {
			return nil, nil, unreadable(root, name, err)
		}
		var f Fragment
		if err == nil {
			f, err = DecodeFragment(text)
		}
		if err == nil && f.Owner != (attach.Owner{ContainerID: container, IfName: ifname}) {
			err = fmt.Errorf("fragment of %s: %w", f.Owner, ErrFragment)
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the hint lacks %s, whose part cannot be read: %v", ifname, err))
			continue
		}
		all = append(all, f)
	}
	return all, warnings, nil
}

// keep writes a fragment into the folder of its sandbox.
func keep(root *os.Root, dir string, f Fragment) error {
	f.Version = fragmentVersion
	text, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode hint fragment of %s: %w", f.Owner, err)
	}
	name := path.Join(dir, f.Owner.IfName+".json")
	return unwritable(root, name, replace(root, name, text, 0o600))
}

// file is one rendered file.
type file struct {
	name string
	text []byte
}

// publish writes the files where the agent and the node's people find them. Somebody may have mounted the folder into a container
// of the pod, so it is as little to be trusted as an emptyDir.
func publish(root *os.Root, key string, files []file) error {
	dir := path.Join(podsDir, key)
	if err := folder(root, dir, 0o755); err != nil {
		return err
	}
	pod, err := enter(root, dir)
	if err != nil {
		return blame(unwritable(root, dir, err))
	}
	defer func() { _ = pod.Close() }()
	name, err := replaceAll(pod, files)
	return blame(unwritable(root, path.Join(dir, name), err))
}

// replaceAll writes what can be written, and gives the name and the error of the first that cannot.
func replaceAll(root *os.Root, files []file) (string, error) {
	var name string
	var first error
	for _, f := range files {
		if err := replace(root, f.name, f.text, 0o644); err != nil && first == nil {
			name, first = f.name, err
		}
	}
	return name, first
}

// errPlanted marks an error that comes of what stands in a pod's folder, and not of the node's file system. Who can write there is the
// pod itself: it pays with the hint, and neither its ADD nor its DEL fails for it.
var errPlanted = errors.New("the pod has put something there")

// blame marks an error about the inside of a pod's folder, if it is of that kind.
func blame(err error) error {
	if slices.ContainsFunc([]syscall.Errno{
		syscall.EISDIR, syscall.ENOTDIR, syscall.ENOTEMPTY, syscall.EEXIST, syscall.EPERM, syscall.EACCES, syscall.EBUSY, syscall.ELOOP, syscall.EXDEV,
		syscall.EMFILE, syscall.ENAMETOOLONG,
	}, func(errno syscall.Errno) bool { return errors.Is(err, errno) }) {
		return fmt.Errorf("%w: %w", err, errPlanted)
	}
	return err
}
