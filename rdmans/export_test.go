// SPDX-License-Identifier: Apache-2.0

package rdmans

// ParseContexts is parseContexts, for the fuzzer.
func ParseContexts(msg []byte) ([]int, error) { return parseContexts(msg) }

// Process is process, for the fuzzer.
func Process(proc string, thread int) (User, bool) { return process(proc, thread) }
