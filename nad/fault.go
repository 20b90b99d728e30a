// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault is why a document is no network that could be attached.
type Fault struct {
	Line   int    // of the file, from 1
	Field  string // in the document, as "spec.config"; may be empty
	Reason string // the remedy first
}

// character shows the first one of a text as encoding/json does.
func character(text []byte) string {
	r, _ := utf8.DecodeRune(text)
	if r == '\'' {
		return `'\''`
	}
	if r == '"' {
		return `'"'`
	}
	return fmt.Sprintf("%q", r)
}

// remedy puts before a message of encoding/json what to do about it. The offset is of the character that it names.
func remedy(text []byte, offset int, message string) string {
	rest := text[offset:]
	before := bytes.TrimRight(text[:offset], " \t\r\n")
	if r, size := utf8.DecodeRune(rest); size > 1 && r != utf8.RuneError {
		// The library shows the first byte alone.
		if _, where, ok := strings.Cut(message, "' "); ok {
			message = "invalid character " + character(rest) + " " + where
		}
	}
	return advice(rest, before, message) + ": " + message
}

// advice is what to do about a character in this place.
func advice(rest, before []byte, message string) string {
	first, _ := utf8.DecodeRune(rest)
	last := byte(0)
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	switch {
	case strings.Contains(message, "after top-level value"):
		if first == '{' || first == '[' {
			return "keep one JSON document, a second one begins here (data after the top-level value)"
		}
		if first == '}' || first == ']' {
			return "remove this " + string(first) + ", or one before it: there is one too many (data after the top-level value)"
		}
		return "remove what follows the end of the JSON (data after the top-level value)"
	case strings.Contains(message, "in string literal"):
		return `close the string with " before the line ends, or write the character as an escape`
	case strings.Contains(message, "in string escape code"):
		return `write \\ for one backslash`
	case strings.ContainsRune("“”„‟«»‘’", first):
		return `write plain " quotes: typographic ones are no JSON`
	case first == '\'':
		return `write " instead of ': JSON has no single quotes`
	case first == '\\':
		return `remove the backslashes before the quotes: inside ' ' and | nothing is escaped`
	case first == '#' || bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")):
		return "remove the comment: JSON has none"
	case bytes.HasPrefix(rest, []byte("{{")) || first == '{' && last == '{':
		return "render the template first: {{ }} is no JSON"
	case (first == '}' || first == ']') && last == ',':
		return "remove the comma before this " + string(first) + " (a trailing comma is no JSON)"
	case last == ':' && strings.ContainsRune("},]", first):
		return "write a value behind the :"
	case first == ',' && (last == ',' || last == '{' || last == '['):
		return "remove this comma"
	}
	return structure(first, rest, message)
}

// structure is the advice on brackets, commas and words.
func structure(first rune, rest []byte, message string) string {
	switch {
	case strings.Contains(message, "after array element"):
		if first == '}' {
			return "close the list with ] before this }: it is never closed"
		}
		return "write a comma between two elements of the list"
	case strings.Contains(message, "after object key:value pair"):
		if first == ']' {
			return "close the object with } before this ]: it is never closed"
		}
		return "write a comma between two keys"
	case strings.Contains(message, "after object key"):
		return "write : between a key and its value"
	case strings.Contains(message, "object key string"):
		return `write the key in " quotes`
	case bytes.HasPrefix(rest, []byte("True")) || bytes.HasPrefix(rest, []byte("False")):
		return "write true or false in small letters"
	case bytes.HasPrefix(rest, []byte("None")):
		return "write null"
	case unicode.IsLetter(first) && strings.Contains(message, "beginning of value"):
		return `write text in " quotes`
	case first == '\uFEFF':
		return "remove the byte order mark"
	}
	return "correct the JSON"
}

// unended says of a text that ends too early what it left open.
func unended(text []byte) *broken {
	b := &broken{offset: max(0, len(bytes.TrimRight(text, " \t\r\n"))-1), reason: "unexpected end of JSON input"}
	open, inString := brackets(text)
	switch {
	case inString:
		b.reason = `close the string with ": ` + b.reason
	case len(open) > 0:
		b.open = &open[len(open)-1]
	default:
		b.reason = "complete the JSON, it ends too early: " + b.reason
	}
	return b
}

// bracket is one that is open.
type bracket struct {
	char   byte
	offset int
}

// brackets are those open at the end of a text, and whether a string is.
func brackets(text []byte) ([]bracket, bool) {
	var open []bracket
	inString := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			open = append(open, bracket{c, i})
		case c == '}' || c == ']':
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
	}
	return open, inString
}

func opener(c byte) byte {
	if c == '}' {
		return '{'
	}
	return '['
}

func closer(c byte) byte {
	if c == '{' {
		return '}'
	}
	return ']'
}
