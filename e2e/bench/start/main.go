// SPDX-License-Identifier: Apache-2.0

// Command start measures what starting the plugin costs, beside an empty static Go program and a public peer, in the same run
// and turn by turn, so that a busy machine slows all of them alike. Times are printed for the reader; the verdicts are on ratios
// of medians. Usage: start EMPTY PODFABRIC PEER.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// rounds is enough for a median that moves by less than 2 % between runs on a machine with two cores.
const rounds = 400

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: start EMPTY PODFABRIC PEER")
		os.Exit(2)
	}
	medians, err := measure(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(2)
	}
	empty, ours, peer := medians[0], medians[1], medians[2]
	fmt.Printf("empty static Go program %8s\npodfabric VERSION       %8s\nmacvlan v1.10.0 VERSION %8s\n", empty, ours, peer)
	ok := verdict("podfabric / empty", ratio(ours, empty), 1.7)
	ok = verdict("podfabric / macvlan", ratio(ours, peer), 1.0) && ok
	if !ok {
		os.Exit(1)
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func verdict(what string, got, most float64) bool {
	word := "ok"
	if got > most {
		word = "missed"
	}
	fmt.Printf("%-20s %.2f  at most %.2f  %s\n", what, got, most, word)
	return got <= most
}

// measure runs each program once to warm the page cache, then all of them in turn, and gives the medians.
func measure(programs []string) ([]time.Duration, error) {
	times := make([][]time.Duration, len(programs))
	for round := range rounds + 1 {
		for i, p := range programs {
			took, err := once(p)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				times[i] = append(times[i], took)
			}
		}
	}
	medians := make([]time.Duration, len(programs))
	for i, t := range times {
		slices.Sort(t)
		medians[i] = t[len(t)/2].Round(time.Microsecond)
	}
	return medians, nil
}

func once(program string) (time.Duration, error) {
	cmd := exec.Command(program)
	cmd.Env = []string{"CNI_COMMAND=VERSION", "CNI_PATH=/nonexistent"}
	cmd.Stdin = strings.NewReader(`{"cniVersion":"1.1.0"}`)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begin)
	if err != nil {
		return 0, fmt.Errorf("run %s: %w: %s", program, err, out)
	}
	return took, nil
}
