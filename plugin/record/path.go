// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"path"
	"strings"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

const (
	attachmentsDir = "attachments"
	claimsDir      = "claims"
	namesDir       = "names"
	suffix         = ".json"
)

// checkOwner refuses what would leave its folder or could not be read back from a path. netconf has refused more before.
func checkOwner(o attach.Owner) error {
	for _, part := range []struct{ what, name string }{{"container ID", o.ContainerID}, {"interface name", o.IfName}} {
		if part.name == "" || part.name == "." || part.name == ".." || strings.ContainsAny(part.name, "/\x00") {
			return fmt.Errorf("check %s %.64q: %w", part.what, part.name, ErrOwner)
		}
	}
	return nil
}

// folderOf and fileOf are below the store's folder.
func folderOf(o attach.Owner) string { return path.Join(attachmentsDir, o.ContainerID) }

func fileOf(o attach.Owner) string { return path.Join(folderOf(o), o.IfName+suffix) }

func claimOf(dev bus.ID) string { return path.Join(claimsDir, dev.String()) }

// target is what a claim of o holds, relative to the folder that it lies in.
func target(o attach.Owner) string { return path.Join("..", fileOf(o)) }

// ownerOf reads what target wrote.
func ownerOf(link string) (attach.Owner, bool) {
	rest, ok := strings.CutPrefix(link, "../"+attachmentsDir+"/")
	id, file, cut := strings.Cut(rest, "/")
	name, suffixed := strings.CutSuffix(file, suffix)
	o := attach.Owner{ContainerID: id, IfName: name}
	return o, ok && cut && suffixed && checkOwner(o) == nil
}
