package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/lab/portrait"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// Cluster is a development cluster on this machine.
type Cluster interface {
	Status(ctx context.Context) (devcluster.Status, error)
	NodesAt(ctx context.Context, base string) ([]devcluster.AdminNode, error)
	RoomsAt(ctx context.Context, base string) ([]devcluster.AdminRoom, error)
}

// Options say what load to make, on what.
type Options struct {
	URL            string // of the page or any signaling node
	Rooms          int
	Room           string // the name of the only room; empty: names by the seed
	Peers          int    // in each room
	Publishers     int    // the first ones of each room; the others only receive; 0 = all
	JoinsPerSecond float64
	Duration       time.Duration // from when everybody is in
	Video          peer.Video
	Codec          portrait.Codec
	Seed           uint64 // of rooms' names, times and frames

	Keys     *access.Keyring
	Cluster  Cluster   // nil when it is not on this machine
	Progress io.Writer // gets a line now and then
	Terminal bool      // rewrite the line
}

// One process is one machine's worth of people.
const (
	maxRooms     = 1000
	maxPeers     = 3000 // a media node takes --room-people
	maxPeople    = 3000
	maxJoinRate  = 1000
	minJoinRate  = 0.1
	maxDuration  = time.Hour
	maxJoinPhase = 10 * time.Minute
	maxBits      = 2_000_000_000 // sent and received by this process in a second
)

// The page's own numbers.
const (
	mostAudioSlots = 6
	mostVideoSlots = 12
)

// Validate returns every fault of the options at once.
func (o Options) Validate() error {
	var faults []error
	fault := func(wrong bool, format string, values ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, values...))
		}
	}
	people := o.Rooms * o.Peers
	fault(o.Rooms < 1 || o.Rooms > maxRooms, "--rooms %d: give 1 to %d rooms", o.Rooms, maxRooms)
	fault(o.Peers < 1 || o.Peers > maxPeers, "--peers %d: give 1 to %d people in a room", o.Peers, maxPeers)
	fault(o.Publishers < 0 || o.Publishers > o.Peers, "--publishers %d: give 1 to %d, or 0 for everybody", o.Publishers, o.Peers)
	fault(!(o.JoinsPerSecond >= minJoinRate && o.JoinsPerSecond <= maxJoinRate), "--join-rate %g: give %g to %d joins a second", o.JoinsPerSecond, minJoinRate, maxJoinRate)
	fault(o.Duration < time.Second || o.Duration > maxDuration, "--duration %s: give 1s to %s", o.Duration, maxDuration)
	fault(!o.Video.Valid(), "--video %q: give light, sparse, portrait, simulcast, off or none", o.Video)
	fault(o.Codec != portrait.VP8 && o.Codec != portrait.VP9, "--codec %q: give vp8 or vp9", o.Codec)
	if o.Room != "" {
		_, err := access.CheckRoom(o.Room)
		fault(err != nil, "--room: %w", err)
		fault(o.Rooms != 1, "--room %s: it is one room; leave out --rooms %d", o.Room, o.Rooms)
	}
	if where, err := url.Parse(o.URL); err != nil || (where.Scheme != "http" && where.Scheme != "https") || where.Host == "" {
		faults = append(faults, fmt.Errorf("--server %q: give a signaling node's address, for example http://127.0.0.1:7880", o.URL))
	}
	fault(o.Keys == nil, "--api-keys: none given")
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	fault(people > maxPeople, "--rooms %d of --peers %d are %d people: one process plays at most %d", o.Rooms, o.Peers, people, maxPeople)
	joining := time.Duration(float64(people) / o.JoinsPerSecond * float64(time.Second))
	fault(joining > maxJoinPhase, "--join-rate %g: %d people would take %s to join, at most %s", o.JoinsPerSecond, people, joining.Round(time.Second), maxJoinPhase)
	bits := o.bitsPerSecond()
	fault(bits > maxBits, "that would be some %d Mbit/s in and out of this process, at most %d: take fewer people or --video light", bits/1_000_000, maxBits/1_000_000)
	return errors.Join(faults...)
}

func (o Options) publishers() int {
	if o.Publishers == 0 {
		return o.Peers
	}
	return o.Publishers
}

// slots is how many sounds and pictures a person gets at once.
func (o Options) slots() (audio, video int) {
	others := o.publishers()
	if others == o.Peers {
		others-- // nobody sees himself
	}
	return min(max(others, 1), mostAudioSlots), min(max(others, 1), mostVideoSlots)
}

// an upper estimate, sent and received
func (o Options) bitsPerSecond() int {
	if o.Video == peer.VideoNone {
		return 0
	}
	const audio = 40_000
	audioSlots, videoSlots := o.slots()
	all, top := o.Video.BitsPerSecond()
	sent := o.publishers() * (audio + all)
	received := o.Peers * (audioSlots*audio + videoSlots*top)
	return o.Rooms * (sent + received)
}
