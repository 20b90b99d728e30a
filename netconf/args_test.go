// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

// TestSeedsReachEveryKind: what the fuzzers begin with is accepted in every kind, so that they do not spend their time at the door.
func TestSeedsReachEveryKind(t *testing.T) {
	t.Parallel()
	index := 17
	kinds, ipams := map[netconf.Kind]int{}, map[netconf.IPAMKind]int{}
	for _, s := range seeds() {
		if c, err := netconf.Parse(raw(s), netconf.Node{Index: &index}); err == nil {
			kinds[c.Kind]++
			ipams[c.IPAM.Kind]++
		}
	}
	for _, k := range netconf.KindNames() {
		if kinds[k] == 0 {
			t.Errorf("no seed is accepted as %s; accepted are %v", k, kinds)
		}
	}
	for _, k := range []netconf.IPAMKind{netconf.IPAMNone, netconf.IPAMRange, netconf.IPAMStatic, netconf.IPAMDelegate} {
		if ipams[k] == 0 {
			t.Errorf("no seed is accepted with ipam %q; accepted are %v", k, ipams)
		}
	}
}

// said gives the values that a key has in CNI_ARGS, by the reading of libcni (args are joined as K=V;K=V).
func said(args, key string) []string {
	var values []string
	for pair := range strings.SplitSeq(args, ";") {
		if k, v, ok := strings.Cut(pair, "="); ok && k == key && v != "" {
			values = append(values, v)
		}
	}
	return values
}

// The forms that each name may have where it comes out: the UID is a folder's name, the others stand in messages.
var (
	uidForm  = regexp.MustCompile(`^[0-9a-f-]{32,36}$`)
	nameForm = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,252}$`)
)

// FuzzArgs: whatever stands in CNI_ARGS, of a network without capabilities it gives the pod's three names and nothing else, in forms
// that are safe as path and text; and what was refused was refused with a code, in one line.
func FuzzArgs(f *testing.F) {
	const uid = "0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a00"
	for _, s := range []string{
		"", ";", "=", ";;=;", "IgnoreUnknown=1", "IgnoreUnknown=true;X=1", "K8S_POD_UID=" + uid, "K8S_POD_UID=" + uid + ";K8S_POD_UID=" + uid + "0",
		"K8S_POD_NAME=a;K8S_POD_NAMESPACE=b;K8S_POD_INFRA_CONTAINER_ID=c", "K8S_POD_NAME=../../x", "K8S_POD_NAME=a\x1b[2Jb", "K8S_POD_NAME=a\nb",
		"K8S_POD_NAMESPACE=\u202ea", "K8S_POD_NAME=\xff\xfe", "K8S_POD_NAME=" + strings.Repeat("a", 300), "MAC=02:00:00:00:00:01", "MAC=", "IP=10.1.0.9/16",
		"IP=10.1.0.9,fd00::9", "IP=", "K8S_POD_UID=../../../../../../../../etc/xx", "k8s_pod_uid=a", " K8S_POD_UID=" + uid, "K8S_POD_UID =" + uid,
		"K8S_POD_UID=" + strings.Repeat("-", 36), "a=b=c;d", "deviceID=0000:3b:00.3", "K8S_POD_NAME=a;;K8S_POD_NAME=a",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, args string, opted bool) {
		r := raw(vf(`,"capabilities":{"ips":` + map[bool]string{true: "true", false: "false"}[opted] + `,"mac":false},"ipam":{"type":"nv-ipam"}`))
		plain, err := netconf.Parse(r, netconf.Node{})
		if err != nil {
			t.Fatal(err)
		}
		r.Args = args
		c, err := netconf.Parse(r, netconf.Node{})
		if err != nil {
			oneLine(t, err)
			return
		}
		if c.Device != plain.Device || c.Kind != plain.Kind || c.MAC != plain.MAC || c.Name != plain.Name || c.Debug || c.IPAM.Plugin != plain.IPAM.Plugin {
			t.Errorf("%q made %+v of %+v", args, c, plain)
		}
		if len(said(args, "MAC")) > 0 || !opted && len(said(args, "IP")) > 0 {
			t.Errorf("%q was accepted without the capability", args)
		}
		pod := c.Request.Pod
		for _, p := range []struct {
			key, value string
			form       *regexp.Regexp
		}{{"K8S_POD_UID", pod.UID, uidForm}, {"K8S_POD_NAME", pod.Name, nameForm}, {"K8S_POD_NAMESPACE", pod.Namespace, nameForm}} {
			values := said(args, p.key)
			if len(values) == 0 && p.value != "" || len(values) > 0 && slices.ContainsFunc(values, func(v string) bool { return v != p.value }) {
				t.Errorf("%q gives %s %q", args, p.key, p.value)
			}
			if p.value != "" && !p.form.MatchString(p.value) {
				t.Errorf("%s is %q", p.key, p.value)
			}
		}
	})
}

// oneLine checks a refusal: it has a code and is one line that a terminal prints as it stands.
func oneLine(t *testing.T, err error) {
	t.Helper()
	var p *netconf.Problem
	if !errors.As(err, &p) || p.Code == 0 || p.Remedy == "" {
		t.Fatalf("error %v is no *Problem", err)
	}
	if i := strings.IndexFunc(err.Error(), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0xfffd }); i >= 0 {
		t.Errorf("refusal %q has a character at %d that does not print", err, i)
	}
}
