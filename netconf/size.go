// SPDX-License-Identifier: Apache-2.0

package netconf

import "fmt"

// Limits of what ADD takes of a network, whose author is often a tenant. They are far above what anybody needs, and low enough that
// an ADD stays within its deadline and a record, which holds all of it, within what can be read again.
const (
	sizeMax      = 256 << 10 // of the text, in bytes
	valuesMax    = 5000      // of all objects and lists together
	addressesMax = 32        // of one attachment
	listMax      = 1000      // routes, ranges of a set, excluded prefixes
	warningsMax  = 50        // a log and a hint carry them all
)

// size refuses a network that is too large. DEL takes what it gets: it needs little of it.
func (p *parser) size() error {
	no := func(field string, found, most int, what string) error {
		return &Problem{
			Code: CodeInvalid, Remedy: "make the network smaller", Field: field, Found: fmt.Sprintf("%d %s", found, what),
			Right: fmt.Sprintf("at most %d", most),
		}
	}
	if n := len(p.raw.Stdin); n > sizeMax {
		return no(stdin, n, sizeMax, "bytes")
	}
	if n := count(p.root); n > valuesMax {
		return no(stdin, n, valuesMax, "values")
	}
	section := p.root.get("ipam")
	for _, list := range []struct {
		field string
		v     *value
		most  int
	}{
		{"ipam.addresses", section.get("addresses"), addressesMax},
		{"ipam.ranges", section.get("ranges"), addressesMax},
		{"ipam.routes", section.get("routes"), listMax},
		{"ipam.exclude", section.get("exclude"), listMax},
		{"runtimeConfig.ips", p.root.get("runtimeConfig").get("ips"), addressesMax},
	} {
		if n := len(items(list.v)); n > list.most {
			return no(list.field, n, list.most, "entries")
		}
	}
	for i, set := range items(section.get("ranges")) {
		if n := len(items(set)); n > listMax {
			return no(item("ipam.ranges", i), n, listMax, "ranges")
		}
		for j, r := range items(set) {
			if n := len(items(r.get("exclude"))); n > listMax {
				return no(item(item("ipam.ranges", i), j)+".exclude", n, listMax, "entries")
			}
		}
	}
	return nil
}

// count gives the number of values in a value, itself included.
func count(v *value) int {
	n := 1
	for _, m := range v.members {
		n += count(m.value)
	}
	for _, it := range v.items {
		n += count(it)
	}
	return n
}
