// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/podfabric/podfabric/nad"
	"github.com/podfabric/podfabric/peer"
)

// conversions are what --convert prints.
type conversions struct {
	docs   []converted
	failed bool // a network that should be converted is not
	left   bool // a network is ours already, or none that podfabric replaces
}

// findings tells whether the command was in vain, in part or as a whole.
func (c *conversions) findings() bool { return c.failed || c.left && len(c.docs) == 0 }

type converted struct {
	text             []byte
	yaml, definition bool
}

// file converts the networks of a file. Notes and refusals go to a person's eyes.
func (c *conversions) file(j judging, text []byte, w io.Writer) {
	docs := nad.Read(j.file, text)
	for i := range docs {
		d := &docs[i]
		if d.Bystander() && len(docs) > 1 {
			continue
		}
		v := j.document(d)
		out, notes, err := j.convert(d, v)
		at := fmt.Sprintf("%s:%d: %s", j.file, d.Line, nameOf(v))
		if errors.Is(err, peer.ErrOurs) || errors.Is(err, peer.ErrOther) {
			c.left = true
			fmt.Fprintln(w, printable(at+": left as it is: "+err.Error()))
			continue
		}
		if err != nil {
			c.failed = true
			fmt.Fprintln(w, printable(at+": "+err.Error()))
			continue
		}
		for _, n := range notes {
			fmt.Fprintln(w, printable(at+": "+n))
		}
		c.docs = append(c.docs, converted{out, d.YAML(), d.Definition})
	}
}

// convert makes one network ours. What comes out is judged once more: nothing is printed that podfabric refuses.
func (j judging) convert(d *nad.Document, v verdict) ([]byte, []string, error) {
	if v.Verdict == reject {
		return nil, nil, fmt.Errorf("not converted: correct it first: %s", *v.Reason)
	}
	if d.Config == nil {
		return nil, nil, fmt.Errorf("not converted: it has no spec.config")
	}
	c, err := peer.Convert(j.asked(d, d.Config.Root))
	if errors.Is(err, peer.ErrOurs) || errors.Is(err, peer.ErrOther) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("not converted: %w", err)
	}
	out, err := d.Replace(c.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("not converted: %w", err)
	}
	again := j
	again.installed = nil
	again.file = "converted.json"
	if d.YAML() {
		again.file = "converted.yaml"
	}
	for _, v := range judge(again, out) {
		if v.Verdict == reject {
			return nil, nil, fmt.Errorf("not converted: podfabric would refuse it: %s", *v.Reason)
		}
	}
	return out, c.Notes, nil
}

// print writes them so that kubectl takes them again: YAML as a stream, definitions in JSON as a list.
func (c *conversions) print(w io.Writer) error {
	lists := len(c.docs) > 1
	for _, d := range c.docs {
		lists = lists && !d.yaml && d.definition
	}
	if lists {
		var items []json.RawMessage
		for _, d := range c.docs {
			items = append(items, d.text)
		}
		return printJSON(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	for i, d := range c.docs {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		if _, err := w.Write(d.text); err != nil {
			return fmt.Errorf("print the configuration: %w", err)
		}
	}
	return nil
}

func nameOf(v verdict) string {
	if v.Name == nil {
		return "(no name)"
	}
	return *v.Name
}
