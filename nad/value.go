// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"slices"
	"strconv"
	"strings"
)

// Shape is what a value is.
type Shape uint8

// The shapes of JSON.
const (
	Null Shape = 1 << iota
	Bool
	Number
	String
	List
	Object
)

// String names the shape, or several of them, as a person would.
func (s Shape) String() string {
	var names []string
	for _, n := range []struct {
		shape Shape
		name  string
	}{
		{Number, "a number"},
		{String, "a string"},
		{Bool, "true or false"},
		{List, "a list"},
		{Object, "an object"},
		{Null, "null"},
	} {
		if s&n.shape != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " or ")
}

// Value is one value with its place in the text that it was read from.
type Value struct {
	Shape      Shape
	Start, End int    // offsets in the text, End behind its last byte; of a value out of YAML only the line of Start is right
	Text       string // of a string: its content; of a number: the literal
	Yes        bool   // of true
	Members    []Member
	Items      []*Value
}

// Member is one key of an object, in the order of the text.
type Member struct {
	Name  string
	Start int
	Value *Value
}

// Get finds a key; nil when it is absent, null, or v is no object. Of two equal keys the last one counts, as for encoding/json.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for _, m := range slices.Backward(v.Members) {
		if m.Name == name {
			if m.Value.Shape == Null {
				return nil
			}
			return m.Value
		}
	}
	return nil
}

// Has tells whether an object has a key, null or not.
func (v *Value) Has(name string) bool {
	if v == nil {
		return false
	}
	for _, m := range v.Members {
		if m.Name == name {
			return true
		}
	}
	return false
}

// Str is the content of a string, and empty for anything else and for nil.
func (v *Value) Str() string {
	if v == nil || v.Shape != String {
		return ""
	}
	return v.Text
}

// IsTrue tells whether v is the value true.
func (v *Value) IsTrue() bool { return v != nil && v.Shape == Bool && v.Yes }

// Show writes the value for a message: short and on one line.
func (v *Value) Show() string {
	switch {
	case v == nil:
		return "nothing"
	case v.Shape == String:
		return Quote(v.Text)
	case v.Shape == Number:
		return clip(v.Text)
	case v.Shape == Bool:
		return strconv.FormatBool(v.Yes)
	case v.Shape == List:
		return "a list of " + strconv.Itoa(len(v.Items))
	case v.Shape == Object && len(v.Members) == 0:
		return "{}"
	case v.Shape == Object:
		return "an object"
	}
	return v.Shape.String()
}

// Quote makes any text fit to stand in a message.
func Quote(s string) string { return strconv.Quote(clip(s)) }

func clip(s string) string {
	const most = 80
	runes := []rune(s[:min(len(s), 4*most)])
	if len(runes) <= most && len(s) <= 4*most {
		return s
	}
	return string(runes[:min(len(runes), most)]) + "..."
}

// Find gives the value at a path as "ipam.ranges[0][1].subnet", or the one nearest above it. Keys may have dots in them.
func (v *Value) Find(path string) *Value {
	for path != "" {
		next, rest := v.step(path)
		if next == nil {
			return v
		}
		v, path = next, strings.TrimPrefix(rest, ".")
	}
	return v
}

// step goes one key or index down.
func (v *Value) step(path string) (*Value, string) {
	if v == nil {
		return nil, ""
	}
	if inside, ok := strings.CutPrefix(path, "["); ok {
		number, rest, _ := strings.Cut(inside, "]")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(v.Items) {
			return v.Items[i], rest
		}
		return nil, ""
	}
	var best *Member
	for i := range v.Members {
		m := &v.Members[i]
		rest, ok := strings.CutPrefix(path, m.Name)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && (best == nil || len(m.Name) >= len(best.Name)) {
			best = m
		}
	}
	if best == nil {
		return nil, ""
	}
	return best.Value, path[len(best.Name):]
}

// Below joins a path and a key.
func Below(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Item joins a path and an index.
func Item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Repeated finds the first key that stands twice in one object; name is empty if there is none.
func (v *Value) Repeated(path string) (field string, at int) { //nolint:nonamedreturns // says what they are
	if v == nil {
		return "", 0
	}
	seen := make(map[string]bool, len(v.Members))
	for _, m := range v.Members {
		here := Below(path, m.Name)
		if seen[m.Name] {
			return here, m.Start
		}
		seen[m.Name] = true
		if field, at = m.Value.Repeated(here); field != "" {
			return field, at
		}
	}
	for i, item := range v.Items {
		if field, at = item.Repeated(Item(path, i)); field != "" {
			return field, at
		}
	}
	return "", 0
}
