//go:build !linux

package cli

func saySlack(string) {}
