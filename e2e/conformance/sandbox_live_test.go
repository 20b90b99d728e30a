// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// Two sandboxes of one pod live at a time: the first keeps the hint, and the other has it when that one is deleted or dies.
func TestHintOfTwoSandboxesLive(t *testing.T) {
	v := newVolume(t, nil)
	v.call.network = leased(object{"name": "rail0"})
	other := newPod(t, "second")
	first, second := v.call, v.call.in(other.path)
	second.id, second.ifname = "second", "net2"
	shows := func(ifname string) {
		t.Helper()
		for _, file := range []string{v.file("fabric.json"), "/run/podfabric/pods/" + podUID + "/fabric.json"} {
			text, err := os.ReadFile(file)
			if ifname == "" && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil || ifname == "" || strings.Count(string(text), `"netdev"`) != 1 || !strings.Contains(string(text), `"netdev": "`+ifname+`"`) {
				t.Errorf("wanted %q in %s: %v\n%s", ifname, file, err, text)
			}
		}
	}
	do := func(c call, verb, ifname string) {
		t.Helper()
		if got := c.bare(t, verb); got.code != 0 {
			t.Errorf("%s of %s: %s", verb, c.id, got.stdout)
		}
		shows(ifname)
	}
	do(first, "ADD", "net1")
	do(second, "ADD", "net1")
	do(second, "DEL", "net1")
	do(second, "ADD", "net1")
	do(first, "DEL", "net2")
	do(first, "ADD", "net2")
	do(second, "DEL", "net1")
	v.pod.kill(t)
	do(second, "ADD", "net2")
	do(first, "DEL", "net2")
	do(second, "DEL", "")
}
