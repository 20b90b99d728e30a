// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/podfabric/podfabric/plugin"
)

// The library's words, as of v1.3.1, name no remedy.
func TestAdvise(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in     *types.Error
		remedy string
	}{
		{types.NewError(types.ErrIncompatibleCNIVersion, "incompatible CNI versions", "config is \"9.9.9\""), "set cniVersion to one of 0.3.0"},
		{types.NewError(types.ErrDecodingFailure, "error unmarshall network config: unexpected end of JSON input", ""), "make the network configuration"},
		{types.NewError(types.ErrInvalidNetworkConfig, "missing network name", ""), "give the network a name"},
		{types.NewError(types.ErrInvalidEnvironmentVariables, "required env variables [CNI_NETNS] missing", ""), "call the plugin with the CNI variables"},
		{types.NewError(types.ErrIOFailure, "error reading from stdin: EOF", ""), "look at what the runtime"},
	} {
		got := plugin.Advise(test.in)
		if got.Code != test.in.Code || !strings.HasPrefix(got.Msg, test.remedy) || !strings.HasPrefix(got.Details, test.in.Msg) ||
			!strings.Contains(got.Details, test.in.Details) {
			t.Errorf("Advise(%v) = code %d, %q, %q; wanted its code, %q first and its words in the details",
				test.in, got.Code, got.Msg, got.Details, test.remedy)
		}
	}
}
