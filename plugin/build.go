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
	"syscall"
	"time"

	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/devinfo"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/printable"
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
	// Delegated: the environment has delegate.Mark, so that another podfabric calls this one as its IPAM plugin.
	Delegated bool
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
	pool := func(ctx context.Context, holder string) (func(), error) { return locks.Acquire(ctx, "pool", holder) }
	p := &Plugin{
		Open:    c.Open,
		Records: record.New(c.Dir),
		Leases:  lease.Store{Dir: filepath.Join(c.Dir, "leases"), Lock: pool},
		Hints:   &hint.Store{Root: c.Dir, KubeletRoot: node.KubeletRoot, Lock: locks.Acquire},
		Locks:   locks, Delegate: delegate.Caller{Stderr: c.Stderr}, DevInfo: devinfo.Store{Root: cmp.Or(c.Root, "/")},
		Node: read, Log: logger(c.Stderr, node.Log, level), Level: level, Now: time.Now, Version: c.Version, Delegated: c.Delegated,
	}
	p.Hints.Lives = p.lives
	return p
}

// nodeMax bounds what is read of the node's settings, in bytes; a node with a thousand rails needs less.
const nodeMax = 1 << 20

// ReadNode reads the node's own settings; a missing file is the defaults. Whatever stands in the file's place, no verb waits for
// it: a fifo has no end, and DEL comes by here too.
func ReadNode(path string) (netconf.Node, error) {
	file, err := regular(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return netconf.ParseNode(nil)
	}
	if err != nil {
		return netconf.Node{}, unreadable(path, err)
	}
	data, err := io.ReadAll(io.LimitReader(file, nodeMax+1))
	if err = errors.Join(err, file.Close()); err == nil && len(data) > nodeMax {
		err = fmt.Errorf("it is larger than %d bytes: %w", nodeMax, errKind)
	}
	if err != nil {
		return netconf.Node{}, unreadable(path, err)
	}
	return netconf.ParseNode(data)
}

func unreadable(path string, err error) error {
	return &netconf.Problem{
		Code: netconf.CodeInvalid, Remedy: "make " + path + " a file that root can read, or remove it", Field: "node.json", Err: err,
	}
}

// errKind: what stands at a path is no file to read or write.
var errKind = errors.New("not a regular file of sensible size")

// regular opens a regular file and waits for nothing: the open of a fifo ends when somebody opens its other end, that of some
// devices when there is a carrier.
func regular(path string, flags int, perm fs.FileMode) (*os.File, error) {
	file, err := os.OpenFile(path, flags|syscall.O_NONBLOCK|syscall.O_NOCTTY, perm)
	if err != nil {
		return nil, fmt.Errorf("open the file: %w", err)
	}
	stat, err := file.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = fmt.Errorf("open %s, which is of kind %s: %w", path, stat.Mode().Type(), errKind)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
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
		if file, err = regular(c.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			out = io.MultiWriter(stderr, file)
		}
	}
	log := slog.New(handler(printable.Writer(out), c.Format, level))
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
