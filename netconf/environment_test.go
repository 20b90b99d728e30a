// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

func TestParseRefusesEnvironment(t *testing.T) {
	t.Parallel()
	type set = func(*netconf.Raw)
	ifname := func(s string) set { return func(r *netconf.Raw) { r.IfName = s } }
	id := func(s string) set { return func(r *netconf.Raw) { r.ContainerID = s } }
	args := func(s string) set { return func(r *netconf.Raw) { r.Args = s } }
	tests := map[string]struct {
		set   set
		code  uint
		field string
	}{
		"no interface name":      {ifname(""), 4, "CNI_IFNAME"},
		"too long":               {ifname("abcdefghijklmnop"), 4, "CNI_IFNAME"},
		"dot":                    {ifname("."), 4, "CNI_IFNAME"},
		"dots":                   {ifname(".."), 4, "CNI_IFNAME"},
		"slash":                  {ifname("a/b"), 4, "CNI_IFNAME"},
		"colon":                  {ifname("a:1"), 4, "CNI_IFNAME"},
		"blank":                  {ifname("a b"), 4, "CNI_IFNAME"},
		"newline":                {ifname("a\nb"), 4, "CNI_IFNAME"},
		"dollar":                 {ifname("a$b"), 4, "CNI_IFNAME"},
		"semicolon":              {ifname("a;b"), 4, "CNI_IFNAME"},
		"backtick":               {ifname("a`b"), 4, "CNI_IFNAME"},
		"quote":                  {ifname(`a"b`), 4, "CNI_IFNAME"},
		"apostrophe":             {ifname("a'b"), 4, "CNI_IFNAME"},
		"template of the kernel": {ifname("eth%d"), 4, "CNI_IFNAME"},
		"option":                 {ifname("-a"), 4, "CNI_IFNAME"},
		"lo":                     {ifname("lo"), 4, "CNI_IFNAME"},
		"all":                    {ifname("all"), 4, "CNI_IFNAME"},
		"default":                {ifname("default"), 4, "CNI_IFNAME"},
		"not ASCII":              {ifname("nöt1"), 4, "CNI_IFNAME"},
		"no container":           {id(""), 4, "CNI_CONTAINERID"},
		"container path":         {id("../x"), 4, "CNI_CONTAINERID"},
		"container dots":         {id("a..b"), 4, "CNI_CONTAINERID"},
		"container blank":        {id("a b"), 4, "CNI_CONTAINERID"},
		"container long":         {id(strings.Repeat("a", 201)), 4, "CNI_CONTAINERID"},
		"relative netns":         {func(r *netconf.Raw) { r.NetNS = "netns/a" }, 4, "CNI_NETNS"},
		"a process's own netns":  {func(r *netconf.Raw) { r.NetNS = "/proc/./self/fd/9" }, 4, "CNI_NETNS"},
		"no netns":               {func(r *netconf.Raw) { r.NetNS = "" }, 4, "CNI_NETNS"},
		"args without =":         {args("K8S_POD_NAME"), 4, "CNI_ARGS"},
		"args with odd key":      {args("a b=1"), 4, "CNI_ARGS"},
		"UID path":               {args("K8S_POD_UID=../../../../../../../../etc/cron.d/xxxx"), 4, "CNI_ARGS K8S_POD_UID"},
		"UID short":              {args("K8S_POD_UID=abc"), 4, "CNI_ARGS K8S_POD_UID"},
		"UID upper case":         {args("K8S_POD_UID=0B3E7C1A-4F51-4A64-9D0E-3D7F4C2B1A00"), 4, "CNI_ARGS K8S_POD_UID"},
		"UID twice": {
			args("K8S_POD_UID=0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a00;K8S_POD_UID=0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a01"), 4,
			"CNI_ARGS K8S_POD_UID",
		},
		"name path":      {args("K8S_POD_NAME=../x"), 4, "CNI_ARGS K8S_POD_NAME"},
		"name control":   {args("K8S_POD_NAME=a\x1b[31m"), 4, "CNI_ARGS K8S_POD_NAME"},
		"namespace path": {args("K8S_POD_NAMESPACE=a/b"), 4, "CNI_ARGS K8S_POD_NAMESPACE"},
		"MAC":            {args("MAC=02:00:00:00:00:01"), 7, "CNI_ARGS MAC"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := raw(vf(""))
			tt.set(&r)
			_, err := netconf.Parse(r, netconf.Node{})
			if p := problem(t, err); p.Code != tt.code || p.Field != tt.field {
				t.Errorf("got code %d, field %q, %q; want code %d, field %q", p.Code, p.Field, p, tt.code, tt.field)
			}
		})
	}
}

// A key said twice alike is what Multus makes of a runtime's own argument.
func TestParseTakesEqualArgsTwice(t *testing.T) {
	t.Parallel()
	r := raw(vf(""))
	r.Args = "IgnoreUnknown=true;K8S_POD_NAME=a;K8S_POD_UID=;X=1;IgnoreUnknown=1;K8S_POD_NAME=a"
	c, err := netconf.Parse(r, netconf.Node{})
	if err != nil || c.Request.Pod.String() != "a" || len(c.Warnings) > 0 {
		t.Errorf("pod %v, warnings %q, %v; want a", c.Request.Pod, c.Warnings, err)
	}
}
