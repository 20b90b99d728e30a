// SPDX-License-Identifier: Apache-2.0

package delegate_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/delegate"
)

// FuzzAnswer: whatever a delegate prints, what is taken of it are usable addresses, each once, and masked routes; what is not is
// refused in a short line that nobody takes for "already gone".
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"", "{}", "null", "[]", answer10, `{"cniVersion":"0.3.1","ips":[{"version":"4","address":"10.1.0.5/24"}]}`, `{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.5/24"}}`,
		`{"cniVersion":"1.0.0","ips":[null],"routes":[null]}`, `{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.5/33"}]}`, `{"cniVersion":"9.9.9"}`,
		`{"cniVersion":"1.0.0","ips":[{"address":"0.0.0.0/0"},{"address":"ff02::1/8"},{"address":"127.0.0.1/8"}]}`, `{"cniVersion":1}`,
		`{"code":7,"msg":"no such file or directory","details":"a\nb\u001b[2J"}`, `{"code":0,"msg":"x"}`, "\x1b[2J\xff", strings.Repeat("x", 5000),
		`{"cniVersion":"1.0.0","ips":[{"address":"::ffff:10.1.0.5/120"},{"address":"10.1.0.5/24"}],"routes":[{"dst":"::/0","gw":"1.2.3.4"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		if e := delegate.DecodeError("theirs", "ADD", out); e != nil {
			line(t, e)
		}
		result, err := delegate.DecodeResult([]byte(conf), out)
		if err != nil {
			line(t, err)
			return
		}
		addrs, routes, err := delegate.Addresses(result)
		if err != nil {
			if !errors.Is(err, delegate.ErrOutput) {
				t.Errorf("%v does not wrap ErrOutput", err)
			}
			line(t, err)
			return
		}
		seen := map[string]bool{}
		for _, a := range addrs {
			if !netconf.Usable(a.Prefix.Addr()) || !a.Prefix.IsValid() || seen[a.Prefix.Addr().String()] {
				t.Errorf("took %v", addrs)
			}
			seen[a.Prefix.Addr().String()] = true
		}
		for _, r := range routes {
			if !r.Dst.IsValid() || r.Dst != r.Dst.Masked() {
				t.Errorf("took route %v", r)
			}
		}
	})
}

func line(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	// Multus looks for the words in these very letters.
	gone := strings.Contains(text, "no such file or directory") || strings.Contains(text, "No such file or directory")
	if gone || strings.Contains(text, "\n") || len(text) > 8<<10 || !utf8.ValidString(text) {
		t.Errorf("text %.300q", text)
	}
}
