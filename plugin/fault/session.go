// SPDX-License-Identifier: Apache-2.0

//go:build faults

package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// session counts the calls of one session and lets them through.
type session struct {
	plugin.Session
	faults *faults
}

func (s *session) Apply(ctx context.Context, step attach.Step) error {
	kind := kindOf(step)
	if kind == s.faults.omit && leadsHome(step) {
		return nil
	}
	if err := s.faults.putAside(); err != nil {
		return err
	}
	_, err := at(s.faults, kind, step.String(), func() (struct{}, error) { return struct{}{}, s.Session.Apply(ctx, step) })
	return err
}

func (s *session) Observe(ctx context.Context, q attach.Query) (attach.Facts, error) {
	return look(s.faults, "Observe", q.Device.String(), func() (attach.Facts, error) { return s.Session.Observe(ctx, q) })
}

func (s *session) Links(ctx context.Context) ([]attach.Candidate, error) {
	return look(s.faults, "Links", "", func() ([]attach.Candidate, error) { return s.Session.Links(ctx) })
}

func (s *session) Behind(ctx context.Context, ifname string) (attach.Behind, error) {
	return look(s.faults, "Behind", ifname, func() (attach.Behind, error) { return s.Session.Behind(ctx, ifname) })
}

func (s *session) Ports(ctx context.Context, ns attach.NS, device string) ([]attach.Port, error) {
	return look(s.faults, "Ports", device, func() ([]attach.Port, error) { return s.Session.Ports(ctx, ns, device) })
}

// Close is the last point of a session: all is done, and the caller has no answer yet.
func (s *session) Close() error {
	_, err := look(s.faults, "Close", "", func() (struct{}, error) { return struct{}{}, s.Session.Close() })
	return err
}

// look is a point that changes nothing.
func look[T any](f *faults, kind, text string, do func() (T, error)) (T, error) {
	if err := f.bringBack(); err != nil {
		var none T
		return none, err
	}
	return at(f, kind, text, do)
}

// recordsOf are the folders of a state folder that say which device is whose, and what it was at home.
func recordsOf(dir string) []string {
	var folders []string
	for _, name := range []string{"attachments", "claims", "names", "out"} {
		folders = append(folders, filepath.Join(dir, name))
	}
	return folders
}

// asideSuffix is what the folders are called while they are out of the way.
const asideSuffix = ".late"

// putAside takes the records away, if they are to be late.
func (f *faults) putAside() error {
	if !f.late || f.aside {
		return nil
	}
	f.aside = true
	return f.rename("", asideSuffix)
}

func (f *faults) bringBack() error {
	if !f.aside {
		return nil
	}
	f.aside = false
	return f.rename(asideSuffix, "")
}

func (f *faults) rename(from, to string) error {
	for _, folder := range recordsOf(f.dir) {
		if err := os.Rename(folder+from, folder+to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write the records late: %w", err)
		}
	}
	return nil
}
