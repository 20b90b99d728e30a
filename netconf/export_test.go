// SPDX-License-Identifier: Apache-2.0

package netconf

// TableKeys lists every line of the table of network configurations as section and name, in its order.
func TableKeys() [][2]string {
	var keys [][2]string
	for _, k := range configurationKeys() {
		keys = append(keys, [2]string{string(k.in), k.name})
	}
	return keys
}

// Misspellings lists the spellings that are known as mistakes: section, wrong, right.
func Misspellings() [][3]string {
	var list [][3]string
	for _, m := range misspellings() {
		list = append(list, [3]string{string(m.in), m.wrong, m.right})
	}
	return list
}

// HasKey tells whether the table has the key.
func HasKey(in, name string) bool { return configurationKeys().find(section(in), name) != nil }

// KindNames lists all kinds.
func KindNames() []Kind { return allKinds() }

// Described lists the keys that have a description: section and name.
func Described() [][2]string {
	var list [][2]string
	for _, n := range allNotes() {
		list = append(list, [2]string{string(n.in), n.name})
	}
	return list
}
