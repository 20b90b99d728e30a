// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/strace"
)

// request is an attachment as the runtime names it.
type request struct {
	id, netns string
	ipam      string // empty: a range of our own
	more      string // further keys, each beginning with a comma
}

const (
	uid    = "11111111-0000-4000-8000-00000000000"
	volume = "/var/lib/kubelet/pods/%s/volumes/kubernetes.io~empty-dir/podfabric"

	rangeIPAM = `{"type":"range","ranges":[[{"subnet":"10.1.0.0/24","scope":"node"}]]}`
	hostLocal = `{"type":"host-local","dataDir":"` + cniDir + `","ranges":[[{"subnet":"10.2.0.0/24"}]]}`
)

func (r request) uid() string { return uid + r.id[len(r.id)-1:] }

func (r request) conf() string {
	ipam := r.ipam
	if ipam == "" {
		ipam = rangeIPAM
	}
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","link":"macvlan","master":"m0","rdma":{"mode":"off"},
		"ipam":%s%s}`, ipam, r.more)
}

// answer is what a call came to.
type answer struct {
	out, err string
	code     int
	failure  struct {
		Code    uint
		Msg     string
		Details string
	}
	trace  string
	beside bool // a call of another thread failed, too
}

func (a answer) ok() bool { return a.code == 0 }

func (a answer) text() string { return a.failure.Msg + "; " + a.failure.Details }

// patience is how long a call may take that is to end by the node's deadline and have undone itself by ten seconds later.
const patience = 40 * time.Second

// run calls a verb. With fails, that system call of it fails.
func (r request) run(t *testing.T, verb string, fails *strace.Call, errno string) answer {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	a := r.wait(t, verb, strace.Command(ctx, trace, fails, errno, filepath.Join(os.Getenv(binEnv), "podfabric")))
	if a.trace, a.beside, err = strace.Read(trace); err != nil {
		t.Fatal(err)
	}
	return a
}

// wait runs a command that is the plugin.
func (r request) wait(t *testing.T, verb string, cmd *exec.Cmd) answer {
	t.Helper()
	cmd.Stdin = strings.NewReader(r.conf())
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID="+r.id, "CNI_IFNAME=net1", "CNI_NETNS="+r.netns,
		"CNI_PATH="+os.Getenv(binEnv), "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=tests;K8S_POD_NAME="+r.id+";K8S_POD_UID="+r.uid())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	a := answer{out: stdout.String(), err: stderr.String(), code: cmd.ProcessState.ExitCode()}
	if a.code == 1 {
		if err := json.Unmarshal(stdout.Bytes(), &a.failure); err != nil {
			t.Errorf("%s failed and printed no CNI error: %q", verb, a.out)
		}
	}
	return a
}

// plain calls a verb on a healthy disk and wants it to succeed.
func (r request) plain(t *testing.T, verb string) {
	t.Helper()
	a := r.wait(t, verb, exec.CommandContext(t.Context(), filepath.Join(os.Getenv(binEnv), "podfabric")))
	if !a.ok() {
		t.Fatalf("%s of %s: code %d: %s\n%s", verb, r.id, a.failure.Code, a.text(), a.err)
	}
}

// killed calls a verb that is killed when it makes a system call.
func (r request) killed(t *testing.T, verb string, at strace.Call) {
	t.Helper()
	cmd := strace.Kill(t.Context(), filepath.Join(t.TempDir(), "trace"), at, filepath.Join(os.Getenv(binEnv), "podfabric"))
	if a := r.wait(t, verb, cmd); a.code != -1 {
		t.Fatalf("it was to be killed, and ended with %d: %s", a.code, a.out)
	}
}
