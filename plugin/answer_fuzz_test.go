// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/delegate"
)

// FuzzError: whatever an error says, the CNI answer is one line that prints, has a code, and is none that Multus takes for "already
// gone".
func FuzzError(f *testing.F) {
	for _, s := range []string{
		"", "no such file or directory", "No such file or directory", "no such file\nor directory", "no such no such file or directoryfile or directory",
		"\x1b[2J", "\u202e", "\xff", "a\r\nb", "nNo such file or directoryo such file or directory", `\u001b`,
	} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		cause := fmt.Errorf("%s: %w", a, errors.New(b))
		for _, err := range []error{
			cause, &netconf.Problem{Code: 7, Remedy: "do " + a, Field: b, Found: c, Right: a, Err: cause}, &delegate.Error{Plugin: a, Verb: "ADD", Msg: b, Details: c},
			errors.Join(&netconf.Problem{Code: 11, Remedy: a}, cause),
		} {
			got := plugin.Answer(err)
			text, jsonErr := json.Marshal(got)
			if jsonErr != nil || got.Code == 0 {
				t.Errorf("%+v, %v", got, jsonErr)
			}
			for _, part := range []string{got.Msg, got.Details, string(text)} {
				if strings.Contains(part, "no such file or directory") || strings.Contains(part, "No such file or directory") || !utf8.ValidString(part) ||
					strings.ContainsFunc(part, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }) {
					t.Errorf("%q of %q", part, err)
				}
			}
		}
	})
}
