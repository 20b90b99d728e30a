// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// networkName is what libcni takes for a name (pkg/utils, ValidateNetworkName).
var networkName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`)

// top reads what libcni reads before it calls a plugin.
func (j *judge) top() {
	c := j.n.Config
	plugins := c.Get("plugins")
	if alone := j.n.Definition && get(c, "type").Str() != ""; alone || !c.Has("plugins") {
		j.single(c)
		j.named()
		if c.Has("plugins") {
			j.ignore(c.Get("plugins"), "plugins", "a type stands beside it, so Multus runs "+nad.Quote(get(c, "type").Text)+
				" alone; write that into plugins too, and remove the type")
		}
		return
	}
	j.list = true
	switch {
	case plugins == nil || plugins.Shape != nad.List:
		j.reject(plugins, "plugins", "write plugins as a list in [ ]: plugins, found %s", plugins.Show())
		return
	case len(plugins.Items) == 0:
		j.reject(plugins, "plugins", "write at least one plugin into plugins: no plugins in list")
		return
	}
	var entries []Entry
	for i, item := range plugins.Items {
		at := nad.Item("plugins", i)
		kind := get(item, "type")
		switch {
		case item.Shape != nad.Object:
			j.reject(item, at, "write %s as an object in { }: found %s", at, item.Show())
		case kind.Str() == "":
			j.reject(item, nad.Below(at, "type"), `add "type", the name of a plugin, to %s: missing 'type', found %s`,
				at, kind.Show())
		}
		if item.Shape == nad.Object {
			entries = append(entries, Entry{Conf: item, Type: kind.Str(), Path: at})
		}
	}
	j.entries = entries
	j.named()
	seen := map[string]bool{}
	for _, m := range c.Members {
		if seen[m.Name] {
			j.warn(&nad.Value{Start: m.Start}, m.Name, "%s stands twice: the last one counts", m.Name)
		}
		seen[m.Name] = true
		if !slices.Contains([]string{"cniVersion", "cniVersions", "name", "plugins", "disableCheck", "disableGC", "loadOnlyInlinedPlugins"}, m.Name) {
			j.ignore(m.Value, m.Name, "beside plugins the runtime reads name and cniVersion; write it into the entry of "+
				"its plugin")
		}
	}
}

// single reads a configuration of one plugin.
func (j *judge) single(c *nad.Value) {
	kind := get(c, "type")
	switch {
	case kind.Str() == Ours && c.Get("type") == nil:
		j.reject(kind, "type", `write "type" with exactly these letters`)
	case kind.Str() != "":
		j.entries = []Entry{{Conf: c, Type: kind.Str()}}
	case kind != nil:
		j.reject(kind, "type", `write "type" as the name of a plugin: type, found %s`, kind.Show())
	default:
		j.reject(c, "type", `add "type", the name of a plugin: missing 'type'`)
	}
}

// named reads name and cniVersion. Of networks with an entry of ours, podfabric has its own words.
func (j *judge) named() {
	c := j.n.Config
	if j.has(Ours, 0) >= 0 {
		j.version = c.Get("cniVersion").Str()
		return
	}
	key := get // of a list, the runtime takes these keys in no other case
	if j.list {
		key = (*nad.Value).Get
	}
	name := key(c, "name")
	switch {
	case name != nil && name.Shape != nad.String:
		j.reject(name, "name", "write the network's name as a string: name, found %s", name.Show())
	case name.Str() != "" && !networkName.MatchString(name.Text):
		j.reject(name, "name", "name the network with letters, digits and _ . - only: name, found %s", name.Show())
	case name.Str() != "":
	case j.n.Definition:
		j.note(c, "name", "the configuration has no name: Multus puts the definition's into it, libcni alone would refuse it")
	default:
		j.warn(c, "name", "the configuration has no name: libcni refuses it as a file; in a NetworkAttachmentDefinition "+
			"Multus adds one")
	}
	j.cniVersion(key(c, "cniVersion"))
}

func (j *judge) cniVersion(v *nad.Value) {
	known := []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}
	j.version = v.Str()
	switch {
	case v != nil && v.Shape != nad.String:
		j.reject(v, "cniVersion", `write cniVersion as a string, as "1.0.0": cniVersion, found %s`, v.Show())
	case v.Str() == "":
		j.warn(j.n.Config, "cniVersion", "cniVersion is missing, which means 0.1.0: such a result has no list of "+
			"interfaces, so a chained plugin "+
			"cannot find the link, and there is no CHECK; write 1.0.0")
	case !slices.Contains(known, v.Text):
		j.reject(v, "cniVersion", "set cniVersion to one that exists, as 1.0.0: cniVersion, found %s (incompatible CNI "+
			"versions)%s", v.Show(), nearVersion(v.Text))
	case v.Text < "0.3.0":
		j.warn(v, "cniVersion", "cniVersion %s has no list of interfaces in its result, so a chained plugin cannot find "+
			"the link, and there is no CHECK; "+
			"raise it to 0.3.1 or later", v.Text)
	}
}

// nearVersion helps with the usual slips.
func nearVersion(text string) string {
	if strings.HasPrefix(text, "v") {
		return ", without the v"
	}
	if strings.Count(text, ".") < 2 {
		return ", in three numbers"
	}
	return ""
}

// types asks whether the plugins exist.
func (j *judge) types() {
	for _, e := range j.entries {
		meant := Meant(e.Type)
		if meant == "ib-sriov" && meant != e.Type && get(e.Conf, "master") != nil {
			meant = "ipoib" // of the plugins for InfiniBand the one that has a master
		}
		if e.Type != "" {
			j.known(get(e.Conf, "type"), e.path("type"), "plugin type", meant)
		}
	}
}

// known judges the name of a plugin.
func (j *judge) known(v *nad.Value, field, what, meant string) {
	name := v.Text
	did := ""
	if meant != "" && meant != name {
		did = `; did you mean "` + meant + `"?`
	}
	switch {
	case strings.ContainsAny(name, "/\\") || name == "." || name == "..":
		j.reject(v, field, "write the plugin's name alone, without a folder: %s, found %s", field, v.Show())
	case j.n.Installed != nil && name == Ours:
	case j.n.Installed != nil && !j.n.Installed(name):
		j.reject(v, field, "install the plugin, or correct its name: unknown %s %s on this node%s: failed to find plugin "+
			"%s in path", what, nad.Quote(name), did, nad.Quote(name))
	case meant == name || j.n.Installed != nil:
	case meant != "":
		j.reject(v, field, "write %q instead of %s: unknown %s %s%s: failed to find plugin %s in path",
			meant, nad.Quote(name), what, nad.Quote(name), did, nad.Quote(name))
	default:
		j.warn(v, field, "unknown %s %s: its rules are not known here, and whether the node has it only its plugin "+
			"folder tells (--plugins)", what, nad.Quote(name))
	}
}

// qualified is the name of a resource that a pod can ask for (Kubernetes: a domain, a slash, a name).
var qualified = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// resource reads the annotation that brings the device.
func (j *judge) resource() {
	right, wrong := j.annotation()
	field := "metadata.annotations." + nad.ResourceName
	switch {
	case right == nil && wrong == nil:
	case right == nil && wrong.Label:
		j.about(wrong.Line, "metadata.labels."+wrong.Key, "%s stands among the labels: Multus reads it from the "+
			"annotations only, so no device comes from it", wrong.Key)
	case right == nil:
		j.about(wrong.Line, "metadata.annotations."+wrong.Key, "the annotation %s is not read: Multus knows %s only, so "+
			"no device comes from it", wrong.Key, nad.ResourceName)
	case right.Value == "":
		j.about(right.Line, field, "resourceName is empty: no device comes from it")
	case j.resourceFault() != "":
		j.about(right.Line, field, "resourceName %s: %s, so no pod can ask for it, and no deviceID comes from it",
			nad.Quote(right.Value), j.resourceFault())
	}
}

// resourceFault says why no pod can ask for the resource; empty: it can, or there is none.
func (j *judge) resourceFault() string {
	right, _ := j.annotation()
	if right == nil || right.Value == "" || qualified.MatchString(right.Value) {
		return ""
	}
	switch domain, _, slash := strings.Cut(right.Value, "/"); {
	case strings.ContainsAny(right.Value, " \t\n"):
		return "it has blanks in it"
	case !slash:
		return "it has no prefix (domain/name)"
	case domain == "":
		return "empty prefix"
	}
	return "it is no domain/name"
}

// annotation finds the resource's annotation, and one that was meant to be it.
func (j *judge) annotation() (right, wrong *nad.Annotation) { //nolint:nonamedreturns // says which is which
	for i := range j.n.Annotations {
		a := &j.n.Annotations[i]
		key := a.Key[strings.LastIndexByte(a.Key, '/')+1:]
		plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(key))
		switch {
		case a.Key == nad.ResourceName && !a.Label:
			right = a
		case plain == "resourcename" || plain == "resource" && strings.Contains(a.Key, "cni.cncf.io") || plain == "resourcesname":
			wrong = a
		}
	}
	return right, wrong
}

// provided tells whether Multus adds a device.
func (j *judge) provided() bool {
	right, _ := j.annotation()
	return right != nil && right.Value != ""
}
