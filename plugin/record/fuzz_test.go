// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// The kinds of what a folder holds.
const (
	asFile = iota
	asLink
	asFolder
	asFifo
	asSparse
	asClaim // a claim with that name which leads to that text
	kinds
)

// plant puts something below the state folder; what the file system refuses is not there.
func plant(dir, name string, kind uint8, text string) {
	if kind == asClaim {
		_ = os.Symlink(text, filepath.Join(dir, "claims", filepath.Base(name)))
		return
	}
	path := filepath.Join(dir, filepath.Clean("/"+name)) // below dir, as whoever can write there can
	_ = os.MkdirAll(filepath.Dir(path), 0o700)
	if _, err := os.Lstat(path); err == nil {
		return // to write into the fifo that was planted before would hang
	}
	switch kind {
	case asFile:
		_ = os.WriteFile(path, []byte(text), 0o600)
	case asLink:
		_ = os.Symlink(text, path)
	case asFolder:
		_ = os.MkdirAll(path, 0o700)
	case asFifo:
		_ = syscall.Mkfifo(path, 0o600)
	case asSparse:
		if os.WriteFile(path, []byte(text), 0o600) == nil {
			_ = os.Truncate(path, 1<<33)
		}
	}
}

// FuzzStore: with anything in the state folder, a good attachment beside it can be saved, claimed, read and dropped or is refused
// with a reason; nothing hangs, nothing outside is touched, and no text is one that a caller would misread.
func FuzzStore(f *testing.F) {
	good, err := os.ReadFile("testdata/version1.json")
	if err != nil {
		f.Fatal(err)
	}
	seeds := []struct{ name, text string }{
		{"attachments/good/net1.json", string(good)},
		{"attachments/bad/net1.json", string(good)},
		{"attachments/good/net1.json", ""},
		{"attachments/good", "../../outside"},
		{"attachments", "../outside"},
		{"claims", "../outside"},
		{"names", "/"},
		{"claims/.new", "x"},
		{"claims/" + dev2, "../attachments/bad/net1.json"},
		{"claims/" + dev2, "../attachments/../../outside"},
		{"claims/" + dev2, "../attachments/good/net1.json"},
		{"claims/" + dev2, "/proc/self/root"},
		{"claims/" + dev2, strings.Repeat("a", 4000)},
		{"names/" + dev2, `{"version":1}`},
		{"names/" + dev2, "../outside"},
		{"names/" + dev2 + ".uverbs", `{"version":1,"pod":"a","uverbs":-1}`},
		{"names/" + dev2 + ".uverbs", "../outside"},
		{"attachments/good/\x1b[2J.json", "{"},
		{"attachments/good/.net1.json123", "x"},
		{"attachments/a\nb/net1.json", "{}"},
		{".probe", "x"},
		{"attachments/good/net1.json", `{"version":99}`},
	}
	for i, s := range seeds {
		for kind := range uint8(kinds) {
			other := seeds[(i+int(kind)+1)%len(seeds)]
			f.Add(s.name, kind, s.text, other.name, (kind+2)%kinds, other.text)
		}
	}
	f.Fuzz(func(t *testing.T, name string, kind uint8, text, name2 string, kind2 uint8, text2 string) {
		base := t.TempDir()
		dir, outside := filepath.Join(base, "state"), filepath.Join(base, "outside")
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "claims"), 0o700), os.Mkdir(outside, 0o700)); err != nil {
			t.Fatal(err)
		}
		plant(dir, name, kind%kinds, text)
		plant(dir, name2, kind2%kinds, text2)
		alarm := time.AfterFunc(3*time.Minute, func() { panic("the store hangs") })
		defer alarm.Stop()
		for _, err := range use(record.New(dir)) {
			if err != nil && (strings.Contains(strings.ToLower(err.Error()), "no such file") || len(err.Error()) > 16<<10) {
				t.Errorf("text %.300q", err)
			}
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
			t.Errorf("outside the store there is %v, %v", left, err)
		}
	})
}

// use calls everything that a store can do, and gives the errors.
func use(s *record.Store) []error {
	o := owner("good")
	r := intent(o, device(dev2))
	_, before := s.Load(o)
	_, errs := s.List()
	_, claimant := s.Claimant(device(dev2))
	_, claims := s.Claims()
	_, homes := s.Homes()
	_, home := s.LoadHome(device(dev2))
	_, promise := s.Promise(device(dev2), "a", 3)
	_, by := s.ClaimedBy(o)
	errs = append(errs, before, claimant, claims, homes, home, promise, by, s.SaveHome(device(dev2), r.Before), s.Probe(), s.Drop(owner("bad"), device(dev3)))
	saved := s.Save(r)
	errs = append(errs, saved)
	if saved == nil {
		got, err := s.Load(o)
		if err != nil || got.Device != r.Device {
			errs = append(errs, errors.New("no such file: what was saved is not what is read")) // the caller looks for such words
		}
		claimed := s.Claim(device(dev2), o)
		holder, err := s.Claimant(device(dev2))
		if claimed == nil && (err != nil || holder != o) {
			errs = append(errs, errors.New("no such file: what was claimed is another's"))
		}
		errs = append(errs, claimed)
	}
	dropped := s.Drop(o, device(dev2))
	if _, err := s.Load(o); dropped == nil && !errors.Is(err, record.ErrNotFound) {
		errs = append(errs, errors.New("no such file: what was dropped is there"))
	}
	return append(errs, dropped, s.Unclaim(attach.Owner{ContainerID: "bad", IfName: "net1"}, device(dev2)))
}
