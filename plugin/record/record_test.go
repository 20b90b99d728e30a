// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/plugin/statedir/proctest"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

const dev2, dev3 = "0000:3b:00.2", "0000:3b:00.3"

func newStore(t *testing.T) (*record.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "podfabric")
	return record.New(dir), dir
}

// explained says what is wrong with an error that should be ErrUnwritable, with that in its remedy.
func explained(err error, remedy string) error {
	var e *statedir.UnwritableError
	if !errors.Is(err, record.ErrUnwritable) || !errors.As(err, &e) || !strings.Contains(e.Remedy, remedy) || !filepath.IsAbs(e.Path) ||
		strings.Contains(strings.ToLower(err.Error()), "no such file") {
		return fmt.Errorf("not explained by %q: %w", remedy, err)
	}
	return nil
}

// tree lists everything below dir but its folders for all attachments.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if !slices.Contains([]string{".", "attachments", "claims", "names"}, rel) && !strings.HasPrefix(rel, "names/") {
			all = append(all, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	r := intent(owner("4c8e"), device(dev2))
	if _, err := s.Load(r.Owner); !errors.Is(err, record.ErrNotFound) || strings.Contains(err.Error(), "no such file") {
		t.Errorf("before Save: %v", err)
	}
	if rs, errs := s.List(); rs != nil || errs != nil {
		t.Errorf("list before Save: %v %v", rs, errs)
	}
	r.State, r.Soft, r.Args, r.Path = record.Done, "pf0123456789", "K8S_POD_NAME=pod-0", "/opt/cni/bin"
	r.Addresses = []netip.Prefix{netip.MustParsePrefix("10.1.0.5/24")}
	r.GIDs = []attach.WantGID{{Port: 1, Index: 3, Addr: netip.MustParseAddr("::ffff:10.1.0.5")}}
	r.Result = []byte(`{"cniVersion":"1.1.0"}`)
	if err := s.Save(r); err != nil {
		t.Fatal(err)
	}
	got, err := s.Load(r.Owner)
	if err != nil {
		t.Fatal(err)
	}
	r.Version, r.Compatible = record.Version, 1
	opts := []cmp.Option{
		cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, bus.ID{}),
		cmp.Transformer("json", func(m []byte) string { return strings.Join(strings.Fields(string(m)), "") }),
	}
	if diff := cmp.Diff(r, got, opts...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for path, mode := range map[string]fs.FileMode{
		"": 0o755, "attachments": 0o700, "attachments/4c8e": 0o700, "attachments/4c8e/net1.json": 0o600,
	} {
		stat, err := os.Stat(filepath.Join(dir, path))
		if err != nil || stat.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %v", path, stat.Mode(), err, mode)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "attachments/4c8e/net1.json")); err != nil || !strings.HasPrefix(string(text), "{\n  \"version\": 2,\n  \"compatible\": 1,\n  \"state\": \"done\",\n") {
		t.Errorf("file begins %.60q, %v", text, err)
	}
}

// TestGolden: a record that version 1 wrote is read for ever.
func TestGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/version1.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if r.Owner != owner("4c8e") || r.Device != device(dev2) || r.Before.Link.Name != "eth3" || r.Before.RDMA.Index != 3 || r.State != record.Done || r.NetNS.Ino != 4026532177 {
		t.Errorf("read as %+v", r)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	const rest = `"state":"intent","owner":{"containerID":"a","ifname":"net1"}}`
	for name, tc := range map[string]struct{ text, says string }{
		"empty":         {"", "not JSON"},
		"torn":          {`{"version":1,"state":"in`, "not JSON"},
		"two":           {`{"version":1,` + rest + `{"version":1,` + rest, "not JSON"},
		"null":          {"null", "no version"},
		"foreign":       {`{"pod":"x"}`, "no version"},
		"newer":         {`{"version":3,"state":"flying"}`, "newer podfabric"},
		"much newer":    {`{"version":4,"compatible":3,` + rest, "newer podfabric"},
		"newer, no sum": {`{"version":3,"compatible":-1,` + rest, "newer podfabric"},
		"version 0":     {`{"version":0,` + rest, "never was"},
		"wrong version": {`{"version":"1",` + rest, "not JSON of a record"},
		"wrong type":    {`{"version":1,"device":7,` + rest, "version 1"},
		"bad device":    {`{"version":1,"device":"eth0",` + rest, "PCI"},
		"bad state":     {`{"version":1,"state":"odd","owner":{"containerID":"a","ifname":"net1"}}`, "odd"},
		"other's":       {`{"version":1,"state":"done","owner":{"containerID":"b","ifname":"net1"}}`, "b/net1"},
		"nobody's":      {`{"version":1,"state":"done"}`, "container ID"},
		"huge":          {strings.Repeat(" ", 4<<20+1), "larger"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := newStore(t)
			if err := s.Save(intent(owner("z"), device(dev3))); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "attachments", "a", "net1.json")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(dir, "claims"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("../attachments/a/net1.json", filepath.Join(dir, "claims", dev2)); err != nil {
				t.Fatal(err)
			}
			_, err := s.Load(owner("a"))
			if !errors.Is(err, record.ErrUnreadable) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), file) {
				t.Errorf("load: %v", err)
			}
			rs, errs := s.List()
			if len(rs) != 1 || len(errs) != 1 || !errors.Is(errs[0], record.ErrUnreadable) {
				t.Errorf("list: %v, %v", rs, errs)
			}
			if o, err := s.Claimant(device(dev2)); err != nil || o != owner("a") {
				t.Errorf("claimant: %v, %v; what it did with the device is not known", o, err)
			}
			if dev, err := s.ClaimedBy(owner("a")); err != nil || dev != device(dev2) {
				t.Errorf("claimed by: %v, %v", dev, err)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != tc.text {
				t.Errorf("the file was changed: %v", err)
			}
			if err := s.Drop(owner("a"), device(dev2)); err != nil {
				t.Errorf("drop: %v", err)
			}
			if diff := cmp.Diff([]string{"attachments/z", "attachments/z/net1.json"}, tree(t, dir)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	a, b, dev := owner("a"), owner("b"), device(dev2)
	if err := s.Claim(dev, a); !errors.Is(err, record.ErrNotFound) {
		t.Errorf("without a record: %v", err)
	}
	for _, o := range []attach.Owner{a, b} {
		if err := s.Save(intent(o, dev)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Claim(device(dev3), a); err == nil {
		t.Error("a device that the record does not name was claimed")
	}
	if err := s.Claim(bus.ID{}, a); err == nil {
		t.Error("no device was claimed")
	}
	if _, err := s.Claimant(dev); !errors.Is(err, record.ErrNotFound) || errors.Is(err, record.ErrStale) {
		t.Errorf("claimant of a free device: %v", err)
	}
	if _, err := s.ClaimedBy(a); !errors.Is(err, record.ErrNotFound) {
		t.Errorf("claimed by: %v", err)
	}
	for range 2 {
		if err := s.Claim(dev, a); err != nil {
			t.Fatal(err)
		}
	}
	if link, err := os.Readlink(filepath.Join(dir, "claims", dev2)); err != nil || link != "../attachments/a/net1.json" {
		t.Errorf("claim is %q, %v", link, err)
	}
	var claimed *record.ClaimedError
	if err := s.Claim(dev, b); !errors.Is(err, record.ErrClaimed) || !errors.As(err, &claimed) || claimed.Holder != a {
		t.Errorf("claim of another: %v", err)
	}
	if o, err := s.Claimant(dev); err != nil || o != a {
		t.Errorf("claimant: %v, %v", o, err)
	}
	// b's DEL must not free what is a's, whether it names the device or not.
	for _, d := range []bus.ID{dev, {}} {
		if err := s.Drop(b, d); err != nil {
			t.Fatal(err)
		}
	}
	if o, err := s.Claimant(dev); err != nil || o != a {
		t.Errorf("claimant after another's Drop: %v, %v", o, err)
	}
	if err := s.Unclaim(a, dev); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(a); err != nil {
		t.Errorf("Unclaim took the record: %v", err)
	}
	if err := s.Save(intent(b, dev)); err != nil {
		t.Fatal(err)
	}
	if err := s.Claim(dev, b); err != nil {
		t.Errorf("claim of a freed device: %v", err)
	}
	for _, o := range []attach.Owner{a, b, owner("never")} {
		if err := s.Drop(o, bus.ID{}); err != nil {
			t.Errorf("drop %s: %v", o, err)
		}
	}
	if left := tree(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestStaleClaim(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(s *record.Store, dir string) error{
		"no record":                  func(_ *record.Store, dir string) error { return os.RemoveAll(filepath.Join(dir, "attachments", "a")) },
		"a record of another device": func(s *record.Store, _ string) error { return s.Save(intent(owner("a"), device(dev3))) },
		"and a cut short replacement": func(_ *record.Store, dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "attachments", "a")), os.Symlink("../attachments/c/net1.json", filepath.Join(dir, "claims", ".new")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := newStore(t)
			if err := add([]string{dir, "a", dev2}); err != nil {
				t.Fatal(err)
			}
			if err := make(s, dir); err != nil {
				t.Fatal(err)
			}
			o, err := s.Claimant(device(dev2))
			if o != owner("a") || !errors.Is(err, record.ErrStale) || !errors.Is(err, record.ErrNotFound) {
				t.Errorf("claimant: %v, %v", o, err)
			}
			if err := add([]string{dir, "b", dev2}); err != nil {
				t.Fatal(err)
			}
			if o, err := s.Claimant(device(dev2)); err != nil || o != owner("b") {
				t.Errorf("claimant: %v, %v", o, err)
			}
			if err := s.Drop(owner("a"), device(dev2)); err != nil {
				t.Fatal(err)
			}
			if o, err := s.Claimant(device(dev2)); err != nil || o != owner("b") {
				t.Errorf("claimant after the old owner's Drop: %v, %v", o, err)
			}
		})
	}
}

// TestClaimRace: of 64 goroutines and 8 processes that claim one device one wins, whether it is free or held by a stale claim.
func TestClaimRace(t *testing.T) {
	t.Parallel()
	for _, stale := range []bool{false, true} {
		t.Run(fmt.Sprint("stale ", stale), func(t *testing.T) {
			t.Parallel()
			s, dir := newStore(t)
			if stale {
				if err := add([]string{dir, "dead", dev2}); err != nil {
					t.Fatal(err)
				}
				if err := os.RemoveAll(filepath.Join(dir, "attachments", "dead")); err != nil {
					t.Fatal(err)
				}
			}
			var mu sync.Mutex
			var winners []string
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if out := proctest.Run(t, "race", dir, fmt.Sprint("process", i), dev2); out != "" {
						mu.Lock()
						defer mu.Unlock()
						winners = append(winners, out)
					}
				})
			}
			for i := range 64 {
				wg.Go(func() {
					o := owner(fmt.Sprint("goroutine", i))
					err := errors.Join(s.Save(intent(o, device(dev2))), s.Claim(device(dev2), o))
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						winners = append(winners, o.String())
					} else if !errors.Is(err, record.ErrClaimed) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			holder, err := s.Claimant(device(dev2))
			if err != nil || len(winners) != 1 || winners[0] != holder.String() {
				t.Errorf("winners %v, holder %v, %v", winners, holder, err)
			}
		})
	}
}

// TestSiblings: interfaces of one container come and go at once, and its folder with them.
func TestSiblings(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			o := attach.Owner{ContainerID: "pod", IfName: fmt.Sprint("net", i)}
			dev := bus.PCI(pci.Addr{Bus: 1, Function: uint8(i)})
			for range 20 {
				if err := errors.Join(s.Save(intent(o, dev)), s.Claim(dev, o), s.Drop(o, dev)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if left := tree(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestCut kills ADD's and DEL's writes before each change of the file system. Whatever is there then, no record is torn,
// nobody else's claim is harmed, and a Drop heals it all.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, function string
		prepare        func(dir string) error
	}{
		{"add", "add", func(string) error { return nil }},
		{"add again", "add", func(dir string) error { return add([]string{dir, "a", dev2}) }},
		{"add over a stale claim", "add", func(dir string) error {
			return errors.Join(add([]string{dir, "dead", dev2}), os.RemoveAll(filepath.Join(dir, "attachments", "dead")))
		}},
		{"drop", "drop", func(dir string) error { return add([]string{dir, "a", dev2}) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				s, dir := newStore(t)
				if err := tc.prepare(dir); err != nil {
					t.Fatal(err)
				}
				call := proctest.Cut(t, n, tc.function, dir, "a", dev2)
				if n > 80 {
					t.Fatal("no end")
				}
				r, err := s.Load(owner("a"))
				if err != nil && !errors.Is(err, record.ErrNotFound) {
					t.Errorf("cut before change %d (%s): %v", n, call, err)
				}
				recorded := err == nil && r.Device == device(dev2)
				// Another ADD gets the device exactly if a's record does not stand behind a claim of a's.
				holder, claimErr := s.Claimant(device(dev2))
				held := claimErr == nil && holder == owner("a")
				if held && !recorded {
					t.Errorf("cut before change %d (%s): claim without record holds", n, call)
				}
				err = add([]string{dir, "b", dev2})
				if held != errors.Is(err, record.ErrClaimed) || err != nil && !held {
					t.Errorf("cut before change %d (%s): held %v, another's ADD: %v", n, call, held, err)
				}
				if err := s.Drop(owner("a"), bus.ID{}); err != nil {
					t.Errorf("cut before change %d (%s): drop: %v", n, call, err)
				}
				if held {
					if err := add([]string{dir, "b", dev2}); err != nil {
						t.Errorf("cut before change %d (%s): after drop: %v", n, call, err)
					}
				}
				if o, err := s.Claimant(device(dev2)); err != nil || o != owner("b") {
					t.Errorf("cut before change %d (%s): claimant %v, %v", n, call, o, err)
				}
				if err := s.Drop(owner("b"), device(dev2)); err != nil {
					t.Error(err)
				}
				left := slices.DeleteFunc(tree(t, dir), func(path string) bool { return path == "claims/.new" })
				if len(left) != 0 {
					t.Errorf("cut before change %d (%s): left %v", n, call, left)
				}
				if call == "" {
					t.Logf("%d changes", n-1)
					return
				}
			}
		})
	}
}

func TestBadFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, path, remedy string }{
		{"not a folder", file, "remove what stands there"},
		{"below a file", filepath.Join(file, "podfabric"), "remove what stands there"},
		{"no parent", filepath.Join(dir, "no", "podfabric"), "make the folder " + filepath.Join(dir, "no")},
	} {
		s := record.New(tc.path)
		if err := explained(s.Save(intent(owner("a"), device(dev2))), tc.remedy); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// TestHostileNames: names that netconf would refuse do not leave the folder either.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	for _, o := range []attach.Owner{
		{},
		{ContainerID: "..", IfName: "net1"},
		{ContainerID: "a", IfName: ".."},
		{ContainerID: "../../x", IfName: "net1"},
		{ContainerID: "a", IfName: "../../../x"},
		{ContainerID: "/etc", IfName: "net1"},
		{ContainerID: "a", IfName: "a\x00"},
		{ContainerID: ".", IfName: "x"},
	} {
		_, loadErr := s.Load(o)
		for what, err := range map[string]error{
			"save": s.Save(intent(o, device(dev2))), "load": loadErr, "drop": s.Drop(o, bus.ID{}), "claim": s.Claim(device(dev2), o),
		} {
			if !errors.Is(err, record.ErrOwner) {
				t.Errorf("%s %q: %v", what, o, err)
			}
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 0 {
		t.Errorf("something was made: %v, %v", entries, err)
	}
	long := attach.Owner{ContainerID: strings.Repeat("x", 300), IfName: "net1"}
	if err := explained(s.Save(intent(long, device(dev2))), "shorter"); err != nil {
		t.Error(err)
	}
}

// TestPlantedLinks: symbolic links in the place of a folder or a record are not followed, inside the state folder or out.
func TestPlantedLinks(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]func(dir, outside string) error{
		"record out": func(dir, outside string) error {
			return replace(filepath.Join(dir, "attachments/a/net1.json"), filepath.Join(outside, "net1.json"))
		},
		"record inside": func(dir, _ string) error {
			return replace(filepath.Join(dir, "attachments/a/net1.json"), "../b/net1.json")
		},
		"folder out":    func(dir, outside string) error { return replace(filepath.Join(dir, "attachments/a"), outside) },
		"folder inside": func(dir, _ string) error { return replace(filepath.Join(dir, "attachments/a"), "b") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := newStore(t)
			outside := t.TempDir()
			victim := filepath.Join(outside, "net1.json")
			for _, id := range []string{"a", "b"} {
				if err := s.Save(intent(owner(id), device(dev2))); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(filepath.Join(dir, "attachments/a/net1.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(victim, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := link(dir, outside); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Load(owner("a")); !errors.Is(err, record.ErrUnreadable) {
				t.Errorf("load: %v, %v", r.Owner, err)
			}
			if rs, errs := s.List(); len(rs) != 1 || len(errs) != 1 {
				t.Errorf("list: %d records, %v", len(rs), errs)
			}
			changed := intent(owner("a"), device(dev3))
			if err := s.Save(changed); err == nil && strings.HasPrefix(name, "folder") {
				t.Error("saved through a link")
			}
			_ = s.Drop(owner("a"), device(dev3))
			if got, err := os.ReadFile(victim); err != nil || string(got) != string(text) {
				t.Errorf("the file outside was changed: %v", err)
			}
			if r, err := s.Load(owner("b")); err != nil || r.Device != device(dev2) {
				t.Errorf("the other record was changed: %v", err)
			}
		})
	}
}

func replace(path, target string) error {
	return errors.Join(os.RemoveAll(path), os.Symlink(target, path))
}

// TestForeignThings: what lies about is reported or passed over, and never in the way of others.
func TestForeignThings(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	if err := add([]string{dir, "a", dev2}); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"attachments/README": "x", "attachments/a/notes": "x", "attachments/a/.net1.json123": "{", "claims/eth0": "x", "claims/" + dev3: "x",
	} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "claims", "0000:3b:00.4")); err != nil {
		t.Fatal(err)
	}
	rs, errs := s.List()
	if len(rs) != 1 || len(errs) != 2 {
		t.Errorf("%d records, errors %v", len(rs), errs)
	}
	for _, d := range []string{dev3, "0000:3b:00.4"} {
		if _, err := s.Claimant(device(d)); !errors.Is(err, record.ErrUnreadable) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("claimant of %s: %v", d, err)
		}
		if err := s.Save(intent(owner("c"), device(d))); err != nil {
			t.Fatal(err)
		}
		if err := s.Claim(device(d), owner("c")); !errors.Is(err, record.ErrUnreadable) {
			t.Errorf("claim of %s: %v", d, err)
		}
	}
	for _, id := range []string{"a", "c"} {
		if err := s.Drop(owner(id), bus.ID{}); err != nil {
			t.Errorf("drop %s: %v", id, err)
		}
	}
	want := []string{"attachments/README", "attachments/a", "attachments/a/notes", "claims/" + dev3, "claims/0000:3b:00.4", "claims/eth0"}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestHome(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	dev := device(dev2)
	if _, err := s.LoadHome(dev); !errors.Is(err, record.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	first := intent(owner("a"), dev).Before
	away := first
	away.Link = &attach.Link{Place: attach.Place{NS: attach.Pod, Name: "net1"}}
	renamed := first
	renamed.Link = &attach.Link{Place: attach.Place{NS: attach.Host, Name: "net1"}}
	other := renamed
	other.RDMA = &attach.RDMA{Index: 9, Name: "mlx5_3", NodeGUID: first.RDMA.NodeGUID}
	none := renamed
	none.RDMA = nil
	for _, step := range []struct {
		what string
		save attach.Facts
		want string
	}{
		{"away is not kept", away, ""},
		{"the first is kept", first, "eth3"},
		{"a later name of the same device is not", renamed, "eth3"},
		{"another device at the address is", other, "net1"},
		{"one without RDMA is another", func() attach.Facts { f := none; f.Link = first.Link; return f }(), "eth3"},
		{"and the same as itself", none, "eth3"},
	} {
		if err := s.SaveHome(dev, step.save); err != nil {
			t.Fatal(err)
		}
		got, err := s.LoadHome(dev)
		if step.want == "" {
			if !errors.Is(err, record.ErrNotFound) {
				t.Errorf("%s: %v", step.what, err)
			}
			continue
		}
		if err != nil || got.Link.Name != step.want {
			t.Errorf("%s: %v, %v", step.what, got.Link, err)
		}
	}
	for _, text := range []string{"{", `{"version":3}`, `{"version":1}`} {
		if err := os.WriteFile(filepath.Join(dir, "names", dev2), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.LoadHome(dev); !errors.Is(err, record.ErrUnreadable) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := s.SaveHome(dev, first); err != nil {
		t.Fatal(err)
	}
	if got, err := s.LoadHome(dev); err != nil || got.Link.Name != "eth3" {
		t.Errorf("over an unreadable one: %v", err)
	}
}

func TestPromise(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	for _, step := range []struct {
		what, spoil, pod string
		device           string
		uverbs, want     int
	}{
		{"the first", "", "a", dev2, 5, 5},
		{"another number of the same pod", "", "a", dev2, 7, 5},
		{"another device of the pod", "", "a", dev3, 0, 0},
		{"the next pod", "", "b", dev2, 7, 7},
		{"the first pod again", "", "a", dev2, 8, 8},
		{"over what is no JSON", "{", "a", dev2, 9, 9},
		{"over another version", `{"version":2,"pod":"a","uverbs":3}`, "a", dev2, 10, 10},
		{"over what is no number", `{"version":1,"pod":"a","uverbs":-3}`, "a", dev2, 11, 11},
	} {
		if step.spoil != "" {
			if err := os.WriteFile(filepath.Join(dir, "names", dev2+".uverbs"), []byte(step.spoil), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Promise(device(step.device), step.pod, step.uverbs); err != nil || got != step.want {
			t.Errorf("%s: %d, %v, want %d", step.what, got, err, step.want)
		}
	}
	if devs, err := s.Homes(); err != nil || len(devs) > 0 {
		t.Errorf("taken for homes: %v, %v", devs, err)
	}
}

func FuzzDecode(f *testing.F) {
	text, err := os.ReadFile("testdata/version1.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"state":"done","owner":{"containerID":"a","ifname":"b"},"before":{"rdma":null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := record.Decode(text)
		if err != nil {
			return
		}
		// What is read can be written and read again, and is the same.
		s, _ := newStore(t)
		if len(r.Owner.ContainerID) > 255 || len(r.Owner.IfName) > 200 {
			return
		}
		if err = s.Save(r); err != nil {
			t.Fatalf("save %+v: %v", r, err)
		}
		again, err := s.Load(r.Owner)
		if err != nil || again.Device != r.Device || again.State != r.State || again.Before.Function != r.Before.Function {
			t.Errorf("read %+v, wrote, and read %+v, %v", r, again, err)
		}
	})
}
