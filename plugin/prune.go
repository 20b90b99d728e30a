// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
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
	for _, key := range empty {
		of := func(o attach.Owner, pod netconf.Pod) bool { return pod.UID == key || o.ContainerID == key }
		records, err := a.traces(of)
		if err != nil {
			return err
		}
		if len(records) > 0 {
			continue
		}
		if err = a.Hints.PruneOne(ctx, key, all); err != nil {
			return fmt.Errorf("remove the hint of pod %s: %w", key, err)
		}
	}
	return nil
}
