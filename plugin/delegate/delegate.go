// SPDX-License-Identifier: Apache-2.0

// Package delegate calls other CNI IPAM plugins as processes, as a runtime would: the configuration as it came on standard
// input, the request in the environment. It does not use cni/pkg/invoke, which links OpenTelemetry and would cost every
// start of the plugin 0.27 ms and its binary 1.8 MB (measured over 600 runs each), and it holds its callees to a deadline.
package delegate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
)

// The errors of this package. After any error of Add the caller must call Del: the delegate may have given an address.
var (
	// ErrNotFound: CNI_PATH has no such plugin.
	ErrNotFound = errors.New("the plugin is not there")
	// ErrTimeout: the context ended before the delegate did; it and all its children were killed.
	ErrTimeout = errors.New("the plugin did not answer in time")
	// ErrOutput: what the delegate printed is not what CNI asks for.
	ErrOutput = errors.New("the plugin's output is not a CNI answer")
	// ErrNoIPs: ADD succeeded and gave no address.
	ErrNoIPs = errors.New("the plugin gave no address")
	// ErrNoCheck: the delegate has no CHECK, which CNI allows and whereabouts makes use of.
	ErrNoCheck = errors.New("the plugin has no CHECK")
)

// Error is what a delegate itself had to say (CNI specification, section "Error").
type Error struct {
	Plugin, Verb string
	Code         uint // 0 when the delegate gave none
	Msg          string
	Details      string
}

// Error gives plugin, verb, code and text. "No such file or directory" never stands in it: Multus would take the pod as
// cleaned up.
func (e *Error) Error() string {
	text := fmt.Sprintf("call IPAM plugin %s %s: %s", e.Plugin, e.Verb, e.Msg)
	if e.Details != "" {
		text += "; " + e.Details
	}
	if e.Code != 0 {
		text += fmt.Sprintf(" (its code %d)", e.Code)
	}
	return text
}

// Caller calls delegates. The zero value is ready.
type Caller struct {
	Environ []string  // what the delegate inherits beside the CNI variables; nil: os.Environ()
	Stderr  io.Writer // gets what delegates print to standard error; nil: dropped
}

// Call is whom to call and with what. It can be made of a record alone, since a DEL may have to be called when there is no
// configuration any more.
type Call struct {
	Plugin string // the type, looked for in Path
	Config []byte // the whole network configuration as it came, which delegates read more of than the section "ipam"
	// What CNI passes in the environment.
	ContainerID, NetNS, IfName, Args, Path string
}

// Find looks for the plugin in Path without calling it; the error wraps ErrNotFound.
func (Caller) Find(call Call) error {
	if _, err := find(call.Plugin, filepath.SplitList(call.Path)); err != nil {
		return fmt.Errorf("call IPAM plugin %s: %w", call.Plugin, err)
	}
	return nil
}

// Add calls ADD and gives the result in its 1.1 form, whatever version the delegate answered in.
func (c Caller) Add(ctx context.Context, call Call) (*types100.Result, error) {
	out, err := c.run(ctx, "ADD", call)
	if err != nil {
		return nil, err
	}
	result, err := decodeResult(call.Config, out)
	if err != nil {
		return nil, fmt.Errorf("call IPAM plugin %s ADD: %w", call.Plugin, err)
	}
	if len(result.IPs) == 0 {
		return nil, fmt.Errorf("call IPAM plugin %s ADD: %w", call.Plugin, ErrNoIPs)
	}
	return result, nil
}

// Del calls DEL. CNI asks every plugin to succeed when there is nothing to free, so it can be called without an ADD.
func (c Caller) Del(ctx context.Context, call Call) error {
	_, err := c.run(ctx, "DEL", call)
	return err
}

// Check calls CHECK. The error wraps ErrNoCheck when the delegate cannot do it for this configuration.
func (c Caller) Check(ctx context.Context, call Call) error {
	_, err := c.run(ctx, "CHECK", call)
	var e *Error
	if errors.As(err, &e) && hasNoCheck(e) {
		return fmt.Errorf("%w: %w", ErrNoCheck, err)
	}
	return err
}

// GC passes on the list of attachments that must stay, which is in the configuration. A delegate without GC has nothing to
// clear up, and a plugin before CNI 1.1.0 does not know the word.
func (c Caller) GC(ctx context.Context, call Call) error { return c.optional(ctx, "GC", call) }

// Status asks whether an ADD could be given addresses. A delegate without STATUS says nothing against it.
func (c Caller) Status(ctx context.Context, call Call) error { return c.optional(ctx, "STATUS", call) }

// optional calls a verb that a delegate need not have.
func (c Caller) optional(ctx context.Context, verb string, call Call) error {
	_, err := c.run(ctx, verb, call)
	var e *Error
	if errors.As(err, &e) && lacks(e, verb) {
		return nil
	}
	return err
}

// lacks knows how plugins say that they do not have a verb: the CNI library before 1.2 answers "unknown CNI_COMMAND: GC" with
// code 4, newer ones code 1 where the configuration's version has no such verb.
func lacks(e *Error, verb string) bool {
	return e.Code == types.ErrIncompatibleCNIVersion || strings.Contains(e.Msg, "unknown CNI_COMMAND: "+verb) || hasNoCheck(e)
}

// hasNoCheck knows the two ways to say so: the CNI library refuses CHECK below version 0.4.0 with code 1, and plugins
// without it say it in words (whereabouts: "CNI CHECK method is not implemented").
func hasNoCheck(e *Error) bool {
	return e.Code == types.ErrIncompatibleCNIVersion || strings.Contains(strings.ToLower(e.Msg), "not implemented")
}

// decodeResult reads a result. An answer without a version has the configuration's (containernetworking/cni#895).
func decodeResult(conf, out []byte) (*types100.Result, error) {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(out, &answer); err != nil || answer == nil {
		return nil, fmt.Errorf("read result %s: %w", quote(out), ErrOutput)
	}
	var version string
	if err := json.Unmarshal(answer["cniVersion"], &version); err != nil || version == "" {
		if version, err = create.DecodeVersion(conf); err != nil {
			return nil, fmt.Errorf("read version of configuration: %w", err)
		}
		answer["cniVersion"], _ = json.Marshal(version)
		if out, err = json.Marshal(answer); err != nil {
			return nil, fmt.Errorf("read result: %w", err)
		}
	}
	anyResult, err := create.Create(version, out)
	if err != nil {
		return nil, fmt.Errorf("read result of version %q: %w: %w", version, ErrOutput, err)
	}
	result, err := types100.GetResult(anyResult)
	if err != nil {
		return nil, fmt.Errorf("convert result of version %q: %w: %w", version, ErrOutput, err)
	}
	return result, nil
}

// decodeError reads what a delegate printed about its failure; it returns nil when that is no CNI error.
func decodeError(plugin, verb string, out []byte) *Error {
	var e types.Error
	if parsed := json.Unmarshal(bytes.TrimSpace(out), &e) == nil; !parsed || e.Code == 0 && e.Msg == "" {
		return nil
	}
	return &Error{Plugin: plugin, Verb: verb, Code: e.Code, Msg: clean(e.Msg), Details: clean(e.Details)}
}

// textMax bounds what is repeated of a delegate's words.
const textMax = 1024

// clean makes one line of what a delegate said, of a bounded length, without the words that Multus reads as success.
func clean(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	for _, phrase := range []string{"no such file or directory", "No such file or directory"} {
		text = strings.ReplaceAll(text, phrase, "file not found")
	}
	if len(text) > textMax {
		text = strings.ToValidUTF8(text[:textMax], "") + "…"
	}
	return text
}

func quote(out []byte) string { return fmt.Sprintf("%q", clean(string(out))) }
