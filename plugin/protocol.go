// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	cni "github.com/containernetworking/cni/pkg/version"

	"github.com/podfabric/podfabric/netconf"
)

// Main speaks the protocol for one call: it reads environment and standard input and prints one JSON document, unless it fails,
// when its answer is left to print. about is what a person reads who runs the program bare.
func (p *Plugin) Main(started time.Time, about string) *types.Error {
	var begun bool
	watch := func(verb func(*skel.CmdArgs) error) func(*skel.CmdArgs) error {
		return func(args *skel.CmdArgs) error {
			begun = true
			return verb(args)
		}
	}
	f := p.Funcs(started)
	err := skel.PluginMainFuncsWithError(skel.CNIFuncs{
		Add: watch(f.Add), Del: watch(f.Del), Check: watch(f.Check), GC: watch(f.GC), Status: watch(f.Status),
	}, cni.PluginSupports(netconf.Versions()...), about)
	if err == nil || begun {
		return err
	}
	return Advise(err)
}

// Advise gives a remedy to what the CNI library refuses before a verb begins: its own words become the details.
func Advise(err *types.Error) *types.Error {
	remedy := "look at what the runtime calls the plugin with"
	switch err.Code {
	case netconf.CodeVersion:
		remedy = "set cniVersion to one of " + strings.Join(netconf.Versions(), ", ")
	case netconf.CodeEnvironment:
		remedy = "call the plugin with the CNI variables that the details name; runtimes do, a person who tries it by hand must"
	case netconf.CodeDecode:
		remedy = "make the network configuration on standard input one JSON object"
	case netconf.CodeInvalid:
		remedy = "give the network a name of letters, digits and _ . -"
	}
	details := err.Msg
	if err.Details != "" {
		details += "; " + err.Details
	}
	return answer(err.Code, remedy, details)
}
