// SPDX-License-Identifier: Apache-2.0

package attach

// Restore gives the steps home.
func Restore(before, now Facts) []Step { return nil }

// Away lists.
func Away(before, now Facts) []string { return nil }

// Notes lists.
func Notes(before, now Facts) []string { return nil }
