// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"path"
	"strings"
)

// environment is the refusal of a CNI_ variable.
func environment(remedy, field, found, right string) error {
	return &Problem{Code: CodeEnvironment, Remedy: remedy, Field: field, Found: quote(found), Right: right}
}

// maxContainerID leaves room for a suffix in a file name of 255 bytes; runtimes use 64 digits.
const maxContainerID = 200

// checkContainerID is the CNI specification's rule, and that the name can be a folder's.
func checkContainerID(id string) error {
	if plain(id, "_.-") && plain(id[:1], "") && !strings.Contains(id, "..") && len(id) <= maxContainerID {
		return nil
	}
	return environment("give a container ID of letters, digits and _ . -", "CNI_CONTAINERID", id,
		fmt.Sprintf("at most %d bytes, the first a letter or digit, no two dots together", maxContainerID))
}

// maxIfName is IFNAMSIZ-1 of the kernel (include/uapi/linux/if.h).
const maxIfName = 15

// checkIfName is the kernel's rule (dev_valid_name, net/core/dev.c) and more: a pod's annotation chooses the name, and it
// ends up in shell scripts, lists of NCCL and UCX, and paths below /proc/sys/net.
func checkIfName(name string) error {
	switch {
	case len(name) > maxIfName:
		return environment(fmt.Sprintf("shorten the interface name to %d bytes", maxIfName), "CNI_IFNAME", name,
			fmt.Sprintf("1 to %d bytes, found %d", maxIfName, len(name)))
	case name == "lo" || name == "all" || name == "default":
		// "all" and "default" are the kernel's own folders below /proc/sys/net/ipv4/conf.
		return environment("choose another interface name, "+name+" is the kernel's", "CNI_IFNAME", name, "a name as net1")
	case !plain(name, "_.-+") || !plain(name[:1], "_"):
		return environment("choose an interface name of letters, digits and _ . - +", "CNI_IFNAME", name,
			"the first one a letter, digit or _")
	}
	return nil
}

// checkUID lets through what Kubernetes gives out, with and without dashes: the UID becomes a folder below /run and
// kubelet's root.
func checkUID(uid string) error {
	ok := len(uid) >= 32 && len(uid) <= 36
	for i := range len(uid) {
		c := uid[i]
		ok = ok && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c == '-')
	}
	if ok {
		return nil
	}
	return environment("give the pod's UID as Kubernetes writes it", "CNI_ARGS K8S_POD_UID", uid,
		"32 to 36 of the characters 0 to 9, a to f and -")
}

// checkPodName takes names that are safe in messages and logs. Kubernetes' own rule is narrower; other runtimes put a
// container's name here.
func checkPodName(field, name string) error {
	if plain(name, "_.-") && !strings.HasPrefix(name, ".") && len(name) <= 253 {
		return nil
	}
	return environment("give a name of letters, digits and _ . -", field, name, "at most 253 bytes, the first no dot")
}

// pathSafe tells whether s is one segment of a path. DEL asks no more: a name that ADD refuses for another reason has no
// record, so that DEL ends well, and an error would keep the pod from going away.
func pathSafe(s string) bool {
	if s == "." || s == ".." || len(s) > 255 {
		return false
	}
	for i := range len(s) {
		if s[i] == '/' || s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// arg is one pair of CNI_ARGS.
type arg struct{ key, value string }

// field names the pair in messages.
func (a arg) field() string { return "CNI_ARGS " + clip(a.key) }

// parseArgs reads "K=V;K=V". A key said twice is taken only if it says the same: runtimes join the pairs without escaping,
// so that a value with a semicolon could otherwise replace the pod's UID. IgnoreUnknown alone may come in two words: Multus says
// "true" and appends what containerd said, "1".
func parseArgs(s string) ([]arg, error) {
	var args []arg
	seen := map[string]string{}
	for pair := range strings.SplitSeq(s, ";") {
		if pair == "" {
			continue
		}
		k, v, ok := strings.Cut(pair, "=")
		if !ok || !plain(k, "_.-/") {
			return nil, environment("write CNI_ARGS as KEY=VALUE pairs with ; between them", "CNI_ARGS", pair, "KEY=VALUE")
		}
		if before, again := seen[k]; again && k != ignoreUnknown {
			if before != v {
				return nil, environment("say each key of CNI_ARGS once", "CNI_ARGS "+clip(k), v, "as before, "+quote(before))
			}
			continue
		}
		seen[k] = v
		args = append(args, arg{k, v})
	}
	return args, nil
}

// podOf reads the pod's names and UID out of CNI_ARGS.
func podOf(args []arg) (Pod, error) {
	var pod Pod
	for _, a := range args {
		var err error
		switch {
		case a.value == "":
		case a.key == "K8S_POD_UID":
			pod.UID, err = a.value, checkUID(a.value)
		case a.key == "K8S_POD_NAME":
			pod.Name, err = a.value, checkPodName(a.field(), a.value)
		case a.key == "K8S_POD_NAMESPACE":
			pod.Namespace, err = a.value, checkPodName(a.field(), a.value)
		}
		if err != nil {
			return Pod{}, err
		}
	}
	return pod, nil
}

// everybodys tells whether a path means the same to a later process of ours, which has to find the pod again by it.
func everybodys(netns string) bool {
	clean := path.Clean(netns)
	return path.IsAbs(clean) && !strings.HasPrefix(clean, "/proc/self/fd/") && !strings.HasPrefix(clean, "/proc/thread-self/fd/") &&
		!strings.HasPrefix(clean, "/dev/fd/")
}

// request checks what the runtime asks for.
func request(r Raw, args []arg) (Request, error) {
	if err := checkContainerID(r.ContainerID); err != nil {
		return Request{}, err
	}
	if err := checkIfName(r.IfName); err != nil {
		return Request{}, err
	}
	if r.NetNS == "" {
		return Request{}, &Problem{
			Code: CodeEnvironment, Remedy: "give the path of the pod's network namespace", Field: "CNI_NETNS", Found: "nothing",
			Right: "a path as /var/run/netns/cni-1234",
		}
	}
	if !everybodys(r.NetNS) {
		return Request{}, environment("give the path of the pod's network namespace as every process sees it", "CNI_NETNS", r.NetNS,
			"a path from the root, and no descriptor of one process")
	}
	pod, err := podOf(args)
	if err != nil {
		return Request{}, err
	}
	return Request{
		ContainerID: r.ContainerID, IfName: r.IfName, NetNS: r.NetNS, Path: r.Path, Args: r.Args, Pod: pod,
	}, nil
}
