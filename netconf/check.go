// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// invalid is the refusal of a value; v may be nil.
func invalid(remedy, field string, v *value, right string) error {
	p := &Problem{Code: CodeInvalid, Remedy: remedy, Field: field, Right: right}
	if v != nil {
		p.Found = v.found()
	}
	return p
}

// below names a key inside the object at path, so that any key can stand in a message.
func below(path, name string) string {
	if !plain(name, "_-./") {
		name = quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// plain tells whether s is made of ASCII letters, digits and the bytes of more; the empty string is not.
func plain(s, more string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return s != ""
}

// item names an element of the list at path.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// check reads the keys of one object against the table: misspelt ones and values of a wrong shape are refused. Unknown keys
// go to warn, one sentence each; without warn they are refused too.
func (t table) check(in section, path string, v *value, warn func(string)) error {
	if v == nil {
		return nil
	}
	for _, m := range v.members {
		field := below(path, m.name)
		k := t.find(in, m.name)
		if k == nil {
			if err := t.unknown(in, field, m, warn); err != nil {
				return err
			}
			continue
		}
		if m.value.shape != shapeNull && m.value.shape&k.shape == 0 {
			if in == secTop && (m.name == "spoofchk" || m.name == "trust") {
				return invalid(`write "on" or "off", in quotes`, field, m.value, "")
			}
			return invalid(fmt.Sprintf("write %q as %s", m.name, k.shape), field, m.value, k.shape.String())
		}
	}
	return nil
}

func (t table) unknown(in section, field string, m member, warn func(string)) error {
	if right := t.misspelt(in, m.name); right != "" {
		return &Problem{
			Code: CodeInvalid, Remedy: fmt.Sprintf("write %q instead of %s", right, quote(m.name)), Field: field,
			Found: "a known misspelling",
		}
	}
	meant := ""
	if where := t.belongs(in, m.name); len(where) > 0 {
		meant = "; it belongs into the section " + strings.Join(where, " or ")
	} else if near := t.nearest(in, m.name); near != "" {
		meant = fmt.Sprintf("; did you mean %q?", near)
	}
	if warn == nil {
		return invalid(fmt.Sprintf("remove %s, podfabric knows no such key here%s", quote(m.name), meant), field, m.value, "")
	}
	warn(fmt.Sprintf("%s is not a key of podfabric and has no effect%s", field, meant))
	return nil
}

// fits refuses the keys of one object that mean nothing with the kind, and those that this version does not build yet.
func (t table) fits(in section, path string, v *value, kind Kind) error {
	if v == nil {
		return nil
	}
	for _, m := range v.members {
		k := t.find(in, m.name)
		if k == nil || m.value.shape == shapeNull {
			continue
		}
		field := below(path, m.name)
		switch {
		case k.kinds == onNone:
			return invalid(fmt.Sprintf("remove %q: %s", m.name, k.why), field, m.value, "")
		case k.kinds&kind.bit() == 0:
			remedy := fmt.Sprintf("remove %q, it has no meaning with \"link\": %q", m.name, kind)
			if kind == KindChained {
				remedy += ": the plugin before podfabric makes the interface"
			}
			return invalid(remedy, field, m.value, "only with \"link\": "+strings.Join(k.kinds.names(), " or "))
		case k.why == later:
			return invalid(fmt.Sprintf("remove %q, %s", m.name, later), field, m.value, "")
		}
	}
	return nil
}

// names lists the kinds of a set, quoted.
func (k kinds) names() []string {
	var names []string
	for _, kind := range k.list() {
		names = append(names, strconv.Quote(string(kind)))
	}
	return names
}

// choice reads a string that is one of a few words; absent gives the first of them.
func choice[T ~string](v *value, field string, words ...T) (T, error) {
	if v == nil {
		return words[0], nil
	}
	var names []string
	for _, w := range words {
		if v.shape == shapeString && v.text != "" && T(v.text) == w {
			return w, nil
		}
		if w != "" {
			names = append(names, strconv.Quote(string(w)))
		}
	}
	right := strings.Join(names, " or ")
	return "", invalid("set "+field+" to "+right, field, v, right)
}

// integer reads a whole number from low to high.
func integer(v *value, field string, low, high int) (int, error) {
	n, err := strconv.Atoi(v.text)
	if v.shape != shapeNumber || err != nil || n < low || n > high {
		right := fmt.Sprintf("a whole number from %d to %d", low, high)
		return 0, invalid("set "+field+" to "+right, field, v, right)
	}
	return n, nil
}

// duration reads a positive time as Go writes it.
func duration(v *value, field string) (time.Duration, error) {
	d, err := time.ParseDuration(v.str())
	if err != nil || d <= 0 {
		return 0, invalid("set "+field+" to a time above zero", field, v, `a time with its unit, as "500ms" or "2s"`)
	}
	return d, nil
}

// texts reads a list of strings; absent gives nil, an empty list an empty one.
func texts(v *value, field string) ([]string, error) {
	if v == nil {
		return nil, nil
	}
	list := make([]string, 0, len(v.items))
	for i, it := range v.items {
		if it.shape != shapeString {
			return nil, invalid("write "+item(field, i)+" as a string", item(field, i), it, "a string")
		}
		list = append(list, it.text)
	}
	return list, nil
}
