// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/printable"
)

// The sequences are those of ECMA-48 and xterm; the Unicode ones those of CVE-2021-42574.
func TestText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"plain":            {"net1 of team-a/pod-0", "net1 of team-a/pod-0"},
		"empty":            {"", ""},
		"lines and tabs":   {"a\tb\n", "a\tb\n"},
		"other languages":  {"größe 大きさ ½ 😀", "größe 大きさ ½ 😀"},
		"erase the screen": {"a\x1b[2Jb", `a\u001b[2Jb`},
		"window title":     {"\x1b]0;x\a", `\u001b]0;x\u0007`},
		"8-bit CSI":        {"\u009b31m", `\u009b31m`},
		"raw 8-bit CSI":    {"a\x9b31m", "a\ufffd31m"},
		"carriage return":  {"bad\rgood", `bad\u000dgood`},
		"backspace":        {"a\bb", `a\u0008b`},
		"delete":           {"a\x7f", `a\u007f`},
		"NUL":              {"a\x00b", `a\u0000b`},
		"right to left":    {"a\u202eb\u2066c", `a\u202eb\u2066c`},
		"line separator":   {"a\u2028b", `a\u2028b`},
		"zero width":       {"a\u200bb\ufeff", `a\u200bb\ufeff`},
		"tag":              {"a\U000e0041b", `a\udb40\udc41b`},
		"half a character": {"a\xe2\x80", "a\ufffd\ufffd"},
		"no-break space":   {"a\u00a0b", `a\u00a0b`},
	} {
		if got := printable.Text(test.text); got != test.want {
			t.Errorf("%s: %q became %q, want %q", name, test.text, got, test.want)
		}
	}
}

// A JSON document that was cleaned says what it said.
func TestTextOfJSON(t *testing.T) {
	t.Parallel()
	want := map[string]string{"a\u202e": "b\x1b[2J\u009b\x7f\U000e0041", "😀": "\n"}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(printable.Text(string(text))), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	n, err := fmt.Fprintf(printable.Writer(&b), "%s\n", "a\x1b[2J")
	if want := "a\\u001b[2J\n"; err != nil || n != 6 || b.String() != want {
		t.Errorf("wrote %d, %v: %q, want %q", n, err, b.String(), want)
	}
	if _, err := printable.Writer(broken{}).Write([]byte("a")); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a\x1b[2J\u202e", "\xff\x9b", "\U000e0001😀\n", `\u001b`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := printable.Text(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", s, got)
		}
		if again := printable.Text(got); again != got {
			t.Errorf("%q became %q the first time and %q the second", s, got, again)
		}
		if len(got) > 6*len(s) {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
		text, _ := json.Marshal(s)
		var before, after string
		if json.Unmarshal(text, &before) != nil || json.Unmarshal([]byte(printable.Text(string(text))), &after) != nil || before != after {
			t.Errorf("JSON of %q became that of %q", before, after)
		}
	})
}
