package node

import (
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/balancer"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/sfu"
	"github.com/holdfast-rtc/holdfast/signaling"
	"github.com/holdfast-rtc/holdfast/signaling/relay"
)

// Defaults has the values that tags of this package's configurations name, such as ${max_sockets}. Each of them stands once, with its
// reason, in the DefaultConfig of the package that uses it.
func Defaults() map[string]string {
	media, clients, front, relayed := sfu.DefaultConfig(), signaling.DefaultConfig(""), balancer.DefaultConfig(), relay.DefaultConfig()
	return map[string]string{
		"egress_batch":        strconv.FormatBool(media.EgressBatch),
		"egress_bits":         strconv.FormatUint(media.CeilingBitsPerSecond, 10),
		"egress_packets":      strconv.FormatUint(media.CeilingPacketsPerSecond, 10),
		"media_drain_timeout": short(media.DrainTimeout),
		"media_tcp":           media.MediaTCP,
		"room_people":         strconv.Itoa(media.Limits.PeersPerRoom),
		"listed_per_room":     strconv.Itoa(media.Limits.ListedPerRoom),
		"events_keep":         short(redisstore.DefaultEventsLife),
		"events_max":          strconv.Itoa(redisstore.DefaultEventsKept),
		"max_connections":     strconv.Itoa(front.MaxConnections),
		"max_sockets":         strconv.Itoa(clients.MaxSockets),
		"resume_grace":        short(clients.ResumeGrace),
		"turn_allocations":    strconv.Itoa(relayed.MaxAllocations),
	}
}

// short writes 6h0m0s as 6h.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
