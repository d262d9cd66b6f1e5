package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// SetKeys replaces the gossip keys. Members that use other keys are not heard any more.
func (c *Cluster) SetKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return errors.New("there is no gossip key")
	}
	for _, key := range keys {
		if err := c.keyring.AddKey(key); err != nil {
			return fmt.Errorf("add a gossip key: %w", err)
		}
	}
	if err := c.keyring.UseKey(keys[0]); err != nil {
		return fmt.Errorf("use a gossip key: %w", err)
	}
	for _, old := range slices.Backward(slices.Clone(c.keyring.GetKeys())) {
		if !slices.ContainsFunc(keys, func(key []byte) bool { return bytes.Equal(key, old) }) {
			if err := c.keyring.RemoveKey(old); err != nil {
				return fmt.Errorf("remove a gossip key: %w", err)
			}
		}
	}
	return nil
}
