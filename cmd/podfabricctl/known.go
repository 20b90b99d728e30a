// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// States of attachments that have no record, beside those of records.
const (
	unreadable record.State = "unreadable" // the record cannot be read; claim and what is kept at the device tell the rest
	unrecorded record.State = "unrecorded" // the record is lost; what is kept at the device tells of it
)

// recorded tells whether an attachment has a record that can be read.
func recorded(r record.Record) bool { return r.State != unreadable && r.State != unrecorded }

// known is all that is known of the attachments of a node.
type known struct {
	records []record.Record         // those without a good record last, with what is known of them
	said    map[attach.Owner]string // what is to be said of those
	errs    []error                 // of what is no attachment's
}

// gather puts together what the records and the devices tell.
func gather(records []record.Record, errs []error, lost []plugin.Unrecorded) known {
	k := known{records: records, said: map[attach.Owner]string{}}
	for _, err := range errs {
		e := (*record.UnreadableError)(nil)
		if !errors.As(err, &e) || e.Owner.ContainerID == "" {
			k.errs = append(k.errs, err)
			continue
		}
		k.records = append(k.records, record.Record{State: unreadable, Owner: e.Owner, Pod: e.Pod, Device: e.Device, NetNS: e.NetNS})
		k.said[e.Owner] = fmt.Sprintf("%v; %s", err, e.Remedy())
	}
	for _, u := range lost {
		rec := u.Out.Record()
		rec.State, rec.Soft = unrecorded, ""
		k.records = append(k.records, rec)
		k.said[rec.Owner] = u.Text
	}
	return k
}
