// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"bytes"
	"sort"
)

// Text is a JSON text that may be inside a string of a file: of each of its bytes it knows the line of the file.
type Text struct {
	Bytes []byte
	Root  *Value // nil: it cannot be read, and Fault says why
	Fault *Fault
	marks []mark
}

// mark says from which offset on a line holds.
type mark struct{ offset, line int }

// Line gives the line of the file, from 1, on which the byte at an offset stands.
func (t *Text) Line(offset int) int {
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].offset > offset })
	if i == 0 {
		return 1
	}
	return t.marks[i-1].line
}

// plainMarks are those of a text that stands in a file as it is, from a line on.
func plainMarks(text []byte, line int) []mark {
	marks := []mark{{0, line}}
	for offset := 0; ; line++ {
		i := bytes.IndexByte(text[offset:], '\n')
		if i < 0 {
			return marks
		}
		offset += i + 1
		marks = append(marks, mark{offset, line + 1})
	}
}
