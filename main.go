// Command holdfast shards browser video rooms over a cluster of SFU nodes.
package main

import "github.com/holdfast-rtc/holdfast/cli"

func main() { cli.Main() }
