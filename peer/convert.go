// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// The reasons why a network stays as it is.
var (
	ErrOurs  = errors.New("it is of type podfabric already")
	ErrOther = errors.New("podfabric does not replace it")
)

// Converted is podfabric's configuration in place of another plugin's.
type Converted struct {
	Config *nad.Value
	Notes  []string // what is not the same, one sentence each
}

// Convert makes of a network of sriov, macvlan, ipvlan or host-device one of podfabric that does the same: name, addresses and
// the plugins behind it stay; an rdma entry and an MTU set by tuning go into ours. The RDMA device is moved where rdma moved it,
// and left alone where no plugin did (a macvlan or ipvlan never moves one, so there the default stays). Only what the plugin
// itself accepts can be converted; what cannot be said in podfabric is an error that names it.
func Convert(n Network) (Converted, error) {
	j := &judge{n: n}
	if j.top(); len(j.entries) == 0 {
		return Converted{}, fmt.Errorf("%w: it has no plugin", ErrOther)
	}
	first := j.entries[0]
	switch {
	case j.has(Ours, 0) >= 0:
		return Converted{}, ErrOurs
	case first.Type == "ipvlan" && kindOf(first) == "":
		return Converted{}, fmt.Errorf(`write "mode": "l2" and addresses of the fabric's own subnet, or keep ipvlan for it: "mode" %s of ipvlan: podfabric has l2 only`, get(first.Conf, "mode").Show())
	case kindOf(first) == "":
		return Converted{}, fmt.Errorf("plugin %q: %w", first.Type, ErrOther)
	}
	c := &conversion{judge: j, kind: kindOf(first)}
	out, err := c.first(first)
	if err != nil {
		return Converted{}, err
	}
	if !j.list {
		return Converted{Config: objectOf(append(append(c.head(), member("type", word(Ours))), out...)...), Notes: c.notes}, nil
	}
	plugins := []*nad.Value{objectOf(append([]nad.Member{member("type", word(Ours))}, out...)...)}
	for _, e := range j.entries[1:] {
		if kept := c.behind(e); kept != nil {
			plugins = append(plugins, kept)
		}
	}
	members := append(c.head(), c.listKeys()...)
	return Converted{Config: objectOf(append(members, member("plugins", &nad.Value{Shape: nad.List, Items: plugins}))...), Notes: c.notes}, nil
}

// conversion is one on its way.
type conversion struct {
	*judge
	kind  string
	notes []string
}

func (c *conversion) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func objectOf(members ...nad.Member) *nad.Value {
	return &nad.Value{Shape: nad.Object, Members: members}
}

func word(s string) *nad.Value { return &nad.Value{Shape: nad.String, Text: s} }

func member(name string, v *nad.Value) nad.Member { return nad.Member{Name: name, Value: v} }

// head is cniVersion and name.
func (c *conversion) head() []nad.Member {
	const first, right = "0.3.0", "1.0.0"
	version := get(c.n.Config, "cniVersion").Str()
	if version < first {
		found := "is missing"
		if version != "" {
			found = "was " + version
		}
		c.once("cniVersion %s and is now %s: podfabric speaks 0.3.0 and later", found, right)
		version = right
	}
	name := get(c.n.Config, "name").Str()
	if name == "" && c.n.Name != "" {
		name = c.n.Name
		c.once("name is now written out: %s, as Multus puts it in", name)
	}
	head := []nad.Member{member("cniVersion", word(version))}
	if name != "" {
		head = append(head, member("name", word(name)))
	}
	return head
}

// once notes what may come up twice.
func (c *conversion) once(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}

// listKeys are the runtime's own keys of a list.
func (c *conversion) listKeys() []nad.Member {
	var keep []nad.Member
	for _, m := range c.n.Config.Members {
		switch m.Name {
		case "cniVersions", "disableCheck", "disableGC", "loadOnlyInlinedPlugins":
			keep = append(keep, m)
		case "cniVersion", "name", "plugins":
		default:
			c.note("%s is left out: beside plugins it had no effect", m.Name)
		}
	}
	return keep
}

// first makes our entry out of the one that it replaces.
func (c *conversion) first(e Entry) ([]nad.Member, error) {
	out := []nad.Member{member("link", word(c.kind))}
	known := keysOf(e.Type)
	for _, m := range e.Conf.Members {
		f, ok := lookup(m.Name, []keys{known, standard()})
		if m.Value.Shape == nad.Null {
			continue
		}
		if !ok {
			if m.Name == "pciBusID" || m.Name == "deviceID" {
				c.note("%s is left out: %s did not read it", m.Name, e.Type)
				continue
			}
			meant := ""
			if near := nearKey(m.Name, []keys{known, standard()}); near != "" {
				meant = fmt.Sprintf("; it means %q: correct it and convert once more if that was meant", near)
			}
			c.note("%s is left out: %s had no such key%s", m.Name, e.Type, meant)
			continue
		}
		if m.Value.Shape&f.shape() == 0 {
			return nil, fmt.Errorf("%s: found %s, which %s itself refuses", m.Name, m.Value.Show(), e.Type)
		}
		kept, err := c.key(proper(m.Name, known), m.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, kept...)
	}
	if c.kind != "vf" && c.kind != "device" && get(e.Conf, "master") == nil {
		return nil, fmt.Errorf(`"master" is missing: %s takes the interface of the node's default route, `+
			`podfabric never does; name the master`, e.Type)
	}
	return append(out, c.moved(e)...), nil
}

// proper is a key in the spelling of its plugin.
func proper(name string, set keys) string {
	for _, s := range []keys{set, standard()} {
		for key := range s {
			if strings.EqualFold(key, name) {
				return key
			}
		}
	}
	return name
}

// key converts one key of the plugin that is replaced.
func (c *conversion) key(name string, v *nad.Value) ([]nad.Member, error) {
	switch name {
	case "cniVersion", "name", "type", "prevResult":
		return nil, nil
	case "logLevel", "logFile":
		c.note("%s is left out: where podfabric logs is set on the node", name)
		return nil, nil
	case "linkInContainer":
		if v.Yes {
			return nil, fmt.Errorf(`"linkInContainer": podfabric has no master inside the pod`)
		}
		return nil, nil
	case "DPDKMode":
		return nil, nil
	case "useInterfaceNetwork":
		if v.Yes {
			return nil, fmt.Errorf(`"useInterfaceNetwork": podfabric does not take over the host's addresses`)
		}
		return nil, nil
	case "mtu":
		if v.Text == "0" {
			return nil, nil // inherits, as without the key
		}
	case "spoofchk", "trust":
		if v.Text != "on" && v.Text != "off" && v.Text != "" {
			c.note(`%s was %s, which sriov takes for "off", and is now written so`, name, v.Show())
			v = word("off")
		}
	case "ipam":
		return c.ipam(v)
	}
	if v.Shape == nad.String && v.Text == "" {
		return nil, nil // as without the key
	}
	return []nad.Member{member(name, v)}, nil
}

// ipam keeps the section. Our plugin refuses a default route that is not asked for in so many words.
func (c *conversion) ipam(v *nad.Value) ([]nad.Member, error) {
	kind := get(v, "type").Str()
	switch kind {
	case "":
		if len(v.Members) > 0 {
			c.note("ipam is left out: without a type it had no effect")
		}
		return nil, nil
	case "dhcp":
		return nil, fmt.Errorf(`"ipam" of type dhcp: podfabric has no way to use it; use "range", "static" or ` +
			`another IPAM plugin`)
	case "host-local":
		c.note(`ipam stays host-local, which knows only its own node and hands out the same addresses on each: "type": ` +
			`"range" with "perNode" does not`)
	}
	if routes := get(v, "routes"); routes != nil && get(v, "defaultRoute") == nil {
		for _, r := range routes.Items {
			if dst, ok := prefix(get(r, "dst").Str()); ok && dst.Bits() == 0 {
				where := "takes the pod's from its first network"
				if by := c.ownTable(); by != "" {
					where = "goes into a table of its own by " + by
				}
				c.note("the default route %s stays, and %s: ipam.defaultRoute now asks for it in so many words; remove both "+
					"if that is not meant", dst, where)
				yes := member("defaultRoute", &nad.Value{Shape: nad.Bool, Yes: true})
				v = objectOf(append(slices.Clone(v.Members), yes)...)
				break
			}
		}
	}
	return []nad.Member{member("ipam", v)}, nil
}

// moved says what becomes of the RDMA device, and takes the MTU over.
func (c *conversion) moved(e Entry) []nad.Member {
	var out []nad.Member
	if m := c.mtuSet(); m != nil && get(e.Conf, "mtu") == nil && c.has("tuning", 0) > 0 {
		if n, ok := integer(m); ok && n > 0 {
			out = append(out, member("mtu", &nad.Value{Shape: nad.Number, Text: strconv.FormatInt(n, 10)}))
		}
	}
	mode := ""
	switch {
	case c.has("rdma", 1) > 0:
		mode = "move"
		c.note(`the rdma entry is left out: podfabric moves the RDMA device itself, and "rdma.mode": "move" refuses a ` +
			`node in shared mode, as rdma did; ADD also waits for GID and port now ("rdma.require")`)
	case c.kind == "vf" || c.kind == "device":
		mode = "off"
		c.note(`%s left the RDMA device alone, and so does "rdma.mode": "off": write "auto" to have it moved or shared `+
			`by the node's mode, with a hint for NCCL`, e.Type)
	default:
		c.note(`the RDMA device of the master stays at home and is shared, as before; ADD now waits for its GID and ` +
			`writes a hint, and refuses a node in exclusive mode unless "rdma": {"mode": "off"}`)
	}
	if mode != "" {
		out = append(out, member("rdma", objectOf(member("mode", word(mode)))))
	}
	return out
}

// behind keeps an entry behind ours; nil: there is nothing left of it.
func (c *conversion) behind(e Entry) *nad.Value {
	switch e.Type {
	case "rdma":
		return nil
	case "tuning":
		m := c.mtuSet()
		n, ok := integer(m)
		if !ok || n <= 0 || get(c.entries[0].Conf, "mtu") != nil || e.Path != c.entries[c.has("tuning", 0)].Path {
			return e.Conf
		}
		rest := slices.DeleteFunc(slices.Clone(e.Conf.Members), func(k nad.Member) bool { return strings.EqualFold(k.Name, "mtu") })
		if len(rest) == 1 {
			c.note("the tuning entry is left out: it set the MTU alone, and podfabric does that now")
			return nil
		}
		c.note("the MTU has moved from tuning to podfabric")
		return objectOf(rest...)
	}
	return e.Conf
}
