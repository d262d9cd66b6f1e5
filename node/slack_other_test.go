//go:build !linux

package node

func saySlack(string) {}
