// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/devinfo"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/record"
)

// StateDir is where the node's attachments are kept: on tmpfs, since devices and namespaces die with the boot and so must
// what is recorded of them.
const StateDir = "/run/podfabric"

// Config is what differs between the binaries and the tests.
type Config struct {
	Dir     string // state folder; empty: StateDir
	Root    string // of the file system in which Multus names files; empty: "/"
	Open    func(ctx context.Context, netns string) (Session, error)
	Node    func() (netconf.Node, error)
	Stderr  io.Writer // empty: the process's
	Version string
}

// New builds a Plugin on the stores of one state folder.
func New(c Config) *Plugin {
	if c.Dir == "" {
		c.Dir = StateDir
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	read := sync.OnceValues(c.Node)
	node, _ := read() // a broken file is reported by the verb that needs it; its defaults serve until then
	level := new(slog.LevelVar)
	locks := lock.New(filepath.Join(c.Dir, "locks"))
	pool := func(ctx context.Context) (func(), error) {
		return locks.Acquire(ctx, "pool", "an allocation of addresses")
	}
	return &Plugin{
		Open:    c.Open,
		Records: record.New(c.Dir),
		Leases:  lease.Store{Dir: filepath.Join(c.Dir, "leases"), Lock: pool},
		Hints:   &hint.Store{Root: c.Dir, KubeletRoot: node.KubeletRoot, Lock: locks.Acquire},
		Locks:   locks, Delegate: delegate.Caller{Stderr: c.Stderr}, DevInfo: devinfo.Store{Root: cmp.Or(c.Root, "/")},
		Node: read, Log: logger(c.Stderr, node.Log, level), Level: level, Now: time.Now, Version: c.Version,
	}
}

// ReadNode reads the node's own settings; a missing file is the defaults.
func ReadNode(path string) (netconf.Node, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return netconf.ParseNode(nil)
	}
	if err != nil {
		return netconf.Node{}, fmt.Errorf("read %s: %w", path, err)
	}
	return netconf.ParseNode(data)
}

// logger writes to standard error, and to the node's log file when it names one. Only the node may name it: a path out of a
// network configuration would let a tenant append to any file.
func logger(stderr io.Writer, c netconf.Log, level *slog.LevelVar) *slog.Logger {
	if parsed := slog.LevelInfo; parsed.UnmarshalText([]byte(c.Level)) == nil {
		level.Set(parsed) // of an empty or unknown word it stays at info
	}
	var file *os.File
	var err error
	out := stderr
	if c.File != "" {
		// The file stays open for the life of the process; a line is one write, so that two processes do not mix.
		if file, err = os.OpenFile(c.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			out = io.MultiWriter(stderr, file)
		}
	}
	log := slog.New(handler(out, c.Format, level))
	if err != nil {
		log.Warn("the log file that "+netconf.NodePath+" names cannot be opened", "error", err.Error())
	}
	return log
}

func handler(out io.Writer, format netconf.LogFormat, level *slog.LevelVar) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if format == netconf.LogJSON {
		return slog.NewJSONHandler(out, options)
	}
	return slog.NewTextHandler(out, options)
}
