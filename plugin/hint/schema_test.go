// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// schema is docs/fabric.schema.json with the part of JSON Schema that it uses. Keywords are looked up by a closed list, so
// that one added there without a check here fails.
type schema struct{ root map[string]any }

func loadSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile("../../docs/fabric.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s schema
	if err := json.Unmarshal(text, &s.root); err != nil {
		t.Fatal(err)
	}
	return s
}

// check gives everything in a document that breaks the schema, or that the schema does not describe.
func (s schema) check(text []byte) []string {
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		return []string{err.Error()}
	}
	return s.at("fabric", s.root, doc)
}

func (s schema) at(place string, rule map[string]any, v any) []string {
	var bad []string
	fail := func(format string, args ...any) { bad = append(bad, place+": "+fmt.Sprintf(format, args...)) }
	for _, keyword := range slices.Sorted(maps.Keys(rule)) {
		arg := rule[keyword]
		switch keyword {
		case "$schema", "$id", "$defs", "title", "description":
		case "$ref":
			name := strings.TrimPrefix(as[string](arg), "#/$defs/")
			bad = append(bad, s.at(place, as[object](as[object](s.root["$defs"])[name]), v)...)
		case "type":
			types, many := arg.([]any)
			if !many {
				types = []any{arg}
			}
			if !slices.Contains(types, any(typeOf(v))) {
				fail("is a %s, not one of %v", typeOf(v), types)
			}
		case "const":
			if v != arg {
				fail("is %v, not %v", v, arg)
			}
		case "enum":
			if !slices.Contains(as[[]any](arg), v) {
				fail("is %v, not one of %v", v, arg)
			}
		case "minimum":
			if n, ok := v.(float64); ok && n < as[float64](arg) {
				fail("is %v, below %v", n, arg)
			}
		case "required":
			have, isObject := v.(object)
			for _, name := range as[[]any](arg) {
				if _, ok := have[as[string](name)]; isObject && !ok {
					fail("lacks %s", name)
				}
			}
		case "properties":
			have := as[object](v)
			for _, name := range slices.Sorted(maps.Keys(have)) {
				sub := as[object](as[object](arg)[name])
				if sub == nil {
					fail("has %s, which the schema does not know", name)
					continue
				}
				bad = append(bad, s.at(place+"."+name, sub, have[name])...)
			}
		case "items":
			for i, item := range as[[]any](v) {
				bad = append(bad, s.at(fmt.Sprintf("%s[%d]", place, i), as[object](arg), item)...)
			}
		default:
			fail("the schema uses %q, which this test cannot check", keyword)
		}
	}
	return bad
}

// object is a JSON object.
type object = map[string]any

// as gives v as a T, or the zero value, which then fails some check.
func as[T any](v any) T {
	t, _ := v.(T)
	return t
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// The check itself must see each kind of damage.
func TestSchemaSeesDamage(t *testing.T) {
	t.Parallel()
	s := loadSchema(t)
	good := `{"version":1,"pod":{},"mode":"","rails":[],"nccl":{"oldest":"2.21","hcas":[],"settings":[],"notes":[],"noRight":null},"warnings":[]}`
	if bad := s.check([]byte(good)); len(bad) > 0 {
		t.Fatal(bad)
	}
	for _, change := range [][2]string{
		{`"version":1`, `"version":2`},
		{`"mode":""`, `"mode":"both"`},
		{`"rails":[]`, `"rails":null`},
		{`"rails":[]`, `"rails":[{}]`},
		{`"warnings":[]`, `"warnings":[1]`},
		{`"warnings":[]`, `"extra":[]`},
		{`"noRight":null`, `"noRight":false`},
		{`"oldest":"2.21",`, ``},
	} {
		if text := strings.Replace(good, change[0], change[1], 1); len(s.check([]byte(text))) == 0 {
			t.Errorf("%s in place of %s passes", change[1], change[0])
		}
	}
}
