// SPDX-License-Identifier: Apache-2.0

package main

import "encoding/json"

// probe is as much as tells what a document is. What is of another shape than it should be counts as absent.
type probe struct {
	kind, name, config    string
	metaName, annotated   string
	typ                   *string
	items, plugins        []json.RawMessage
	version, nameAsWasPut json.RawMessage
}

// probeOf looks at a text; it is none when the text is no JSON object.
func probeOf(text []byte) (probe, bool) {
	top := object(text)
	meta, spec := object(top["metadata"]), object(top["spec"])
	p := probe{
		kind: str(top["kind"]), name: str(top["name"]), config: str(spec["config"]), metaName: str(meta["name"]),
		annotated: str(object(meta["annotations"])[resourceName]), items: items(top["items"]), plugins: items(top["plugins"]),
		version: top["cniVersion"], nameAsWasPut: top["name"],
	}
	if t := str(top["type"]); t != "" {
		p.typ = &t
	}
	return p, top != nil
}

func object(text []byte) map[string]json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(text, &o) != nil {
		return nil
	}
	return o
}

func items(text []byte) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) != nil {
		return nil
	}
	return list
}

func str(text []byte) string {
	var s string
	if json.Unmarshal(text, &s) != nil {
		return ""
	}
	return s
}
