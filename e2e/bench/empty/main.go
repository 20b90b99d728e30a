// SPDX-License-Identifier: Apache-2.0

// Command empty does nothing: the least that starting a static Go program can cost.
package main

func main() {}
