// SPDX-License-Identifier: Apache-2.0

//go:build !recordprev && !recordnext

package record

// Version is the version of records that this program writes and the newest that it knows. Version 2 brought Compatible.
const Version = 2

// compatible is the oldest version whose programs can take back what a record of ours says: those read all that counts, and
// pass over the fields that they do not know.
const compatible = 1
