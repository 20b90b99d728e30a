// SPDX-License-Identifier: Apache-2.0

package delegate

import types100 "github.com/containernetworking/cni/pkg/types/100"

// DecodeResult is decodeResult, for the fuzzer.
func DecodeResult(conf, out []byte) (*types100.Result, error) { return decodeResult(conf, out) }

// DecodeError is decodeError, for the fuzzer.
func DecodeError(plugin, verb string, out []byte) *Error { return decodeError(plugin, verb, out) }
