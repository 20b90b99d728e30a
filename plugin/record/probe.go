// SPDX-License-Identifier: Apache-2.0

package record

import "github.com/podfabric/podfabric/plugin/statedir"

// probeFile is written and removed by Probe.
const probeFile = ".probe"

// Probe tells whether a record could be written now; its error wraps ErrUnwritable when not.
func (s *Store) Probe() error {
	root, err := s.write()
	if err != nil {
		return err
	}
	defer closeRoot(root)
	if err := statedir.Write(root, probeFile, []byte("\n")); err != nil {
		return err
	}
	return s.remove(root, probeFile)
}
