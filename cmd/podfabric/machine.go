// SPDX-License-Identifier: Apache-2.0

//go:build !faults

package main

func machine[T any](open T) T { return open }
