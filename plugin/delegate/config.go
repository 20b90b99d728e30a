// SPDX-License-Identifier: Apache-2.0

package delegate

import (
	"bytes"
	"encoding/json"
	"maps"
)

// Again gives the configuration for a later call about an attachment: that of its ADD, since somebody may have edited the network
// meanwhile and the delegate must look where its lease is, with what is the call's own. called is what the runtime calls with now: it is
// what comes back, byte for byte, if the two agree, and if recorded is none. A called that is none leaves recorded.
func Again(recorded, called []byte) []byte {
	was, now := object(recorded), object(called)
	switch {
	case was == nil:
		return called
	case now == nil:
		return recorded
	}
	again := maps.Clone(was)
	delete(again, "prevResult") // that of the plugin before ADD, if any
	own := []string{"runtimeConfig"}
	if now["prevResult"] != nil {
		own = append(own, "prevResult", "cniVersion") // the result has the form of this version
	}
	for _, key := range own {
		if now[key] != nil {
			again[key] = now[key]
		}
	}
	if maps.EqualFunc(again, now, sameText) {
		return called
	}
	text, err := json.Marshal(again)
	if err != nil {
		return called
	}
	return text
}

// object reads a JSON object one level deep; nil: it is none.
func object(text []byte) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// sameText compares two values but for the white space between their parts, which a record has its own of.
func sameText(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
