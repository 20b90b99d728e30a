// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"slices"
	"strconv"
	"strings"
)

// misspelling is one way in which people have really written a key.
type misspelling struct {
	in    section
	wrong string
	right string
}

// misspellings are refused, because the setting that the author meant would be missing. Spellings that differ from a key
// only in case, '-' and '_' are not listed: sameLetters finds them. The list is exact on purpose; a distance between words
// would one day refuse another plugin's key (ovs-cni's "trunk" is two letters from "trust").
func misspellings() []misspelling {
	return []misspelling{
		{secTop, "spoofcheck", "spoofchk"}, // sriov-cni#201
		{secTop, "spoof", "spoofchk"},
		{secTop, "vlanid", "vlan"},
		{secTop, "vlanpriority", "vlanQoS"},
		{secTop, "vlanprotocol", "vlanProto"},
		{secTop, "macaddress", "mac"},
		{secTop, "minrate", "min_tx_rate"},
		{secTop, "maxrate", "max_tx_rate"},
		{secTop, "trusted", "trust"},
		{secTop, "pciaddress", "pciBusID"},
		{secTop, "capability", "capabilities"},
		{secTop, "rails", "rail"},
		{secTop, "hints", "hint"},
		{secMaster, "pf", "pfNames"},
		{secMaster, "pfname", "pfNames"},
		{secMaster, "pciaddress", "pci"},
		{secMaster, "pcibusid", "pci"},
		{secRDMA, "required", "require"},
		{secRDMA, "gidtimeout", "wait"},
		{secRDMA, "timeout", "wait"},
		{secRDMA, "rxe", "softRoCE"},
		{secHint, "required", "require"},
		{secHint, "tc", "trafficClass"},
		{secHint, "volumes", "volume"},
		{secRange, "route", "routes"},
		{secRange, "range", "ranges"},
		{secRange, "excludes", "exclude"},
		{secStatic, "route", "routes"},
		{secStatic, "address", "addresses"},
		{secSpan, "excludes", "exclude"},
		{secSpan, "start", "rangeStart"},
		{secSpan, "end", "rangeEnd"},
		{secSpan, "gw", "gateway"},
		{secRoute, "gateway", "gw"},
		{secRoute, "via", "gw"},
		{secRoute, "destination", "dst"},
		{secRoute, "to", "dst"},
	}
}

// letters reduces a key to what is read aloud.
func letters(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}

// misspelt gives the key that a name of this section was meant to be; empty when it is not known as a mistake.
func (t table) misspelt(in section, name string) string {
	plain := letters(name)
	for _, k := range t {
		if k.in == in && k.kinds != onNone && letters(k.name) == plain {
			return k.name
		}
	}
	for _, m := range misspellings() {
		if m.in == in && letters(m.wrong) == plain {
			return m.right
		}
	}
	return ""
}

// belongs gives the sections, quoted, that have the key which stands at the top; none for a key of another section, or of none.
func (t table) belongs(in section, name string) []string {
	if in != secTop {
		return nil
	}
	inside := map[section]string{
		secRDMA: "rdma", secHint: "hint", secVF: "vf", secMaster: "master", secDNS: "dns", secRange: "ipam", secStatic: "ipam", secSpan: "ipam",
	}
	var where []string
	for _, k := range t {
		at := strconv.Quote(inside[k.in])
		if inside[k.in] != "" && k.kinds != onNone && letters(k.name) == letters(name) && !slices.Contains(where, at) {
			where = append(where, at)
		}
	}
	return where
}

// nearest gives a known key at most two letters away from name; empty when there is none. It only words a warning.
func (t table) nearest(in section, name string) string {
	best, most := "", min(2, len(name)/2)
	if len(name) > 64 {
		return ""
	}
	for _, k := range t {
		if k.in != in || k.kinds == onNone {
			continue
		}
		if d := distance(letters(name), letters(k.name)); d <= most {
			best, most = k.name, d-1
		}
	}
	return best
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
