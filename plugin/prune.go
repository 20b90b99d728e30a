// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// pruneLimit bounds what an ADD waits for the locks of others' hints.
const pruneLimit = 20 * time.Millisecond

// prune removes what is left of hints without a part, such as what a pod planted in its folder and its DEL could not remove. It can wait for
// the next ADD. A hint with a part of which nothing is recorded may be a living pod's whose record is lost, and is repair's.
func (a *adding) prune(ctx context.Context) {
	if err := a.pruneEmpty(ctx); err != nil {
		a.log.WarnContext(ctx, "hints of pods that are gone could not be removed", "error", err.Error())
	}
}

func (a *adding) pruneEmpty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pruneLimit)
	defer cancel()
	all := func(attach.Owner) bool { return true }
	empty, err := a.Hints.Dead(ctx, all)
	if err != nil {
		return fmt.Errorf("look for hints without a part: %w", err)
	}
	if len(empty) == 0 {
		return nil
	}
	// Reading all records takes longer the more pods there are, so it is done once, and only for a hint that is left.
	records, err := a.traces(func(attach.Owner, netconf.Pod) bool { return true })
	if err != nil {
		return err
	}
	for _, key := range empty {
		of := func(rec record.Record) bool { return rec.Pod.UID == key || rec.Owner.ContainerID == key }
		if slices.ContainsFunc(records, of) {
			continue
		}
		if err = a.Hints.PruneOne(ctx, key, all); err != nil {
			return fmt.Errorf("remove the hint of pod %s: %w", key, err)
		}
	}
	return nil
}
