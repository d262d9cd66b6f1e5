//go:build linux

package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestAttacksOnTheSignalingNode: one after the other. What a socket costs comes first, while nothing is made yet.
func TestAttacksOnTheSignalingNode(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.each("signaling-1", 150<<20, []attack{
		{"many quiet people", quietPeople},
		{"slow requests", slowRequests},
		{"checks that ask for checks", checksOfChecks},
		{"sixty joins a second of one identity", sixtyJoins},
		{"join requests that grow", bombs},
		{"storms of LiveKit's frames", framesOfLiveKit},
		{"slow readers", slowReaders},
		{"ten thousand sockets", tenThousandSockets},
	})
}

// quietPeople come and stay. Each socket costs 60 KiB at most in rooms of five, and more in larger ones, because each holds its room's roster.
// HOLDFAST_SOCKETS says how many there are, 1000 by default.
func quietPeople(s *stage) {
	people := 1000
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_SOCKETS")); err == nil {
		people = n
	}
	s.hold(100, 5, "early") // Everything that is made once is made before.
	for _, rooms := range []struct{ of, mostKiB int }{{5, 60}, {50, 90}} {
		before := s.memory("signaling-1")
		s.hold(people/2, rooms.of, fmt.Sprint("late", rooms.of, "-"))
		each := (s.memory("signaling-1") - before) / (people / 2) >> 10
		s.t.Logf("%d people in rooms of %d: %d KiB of memory for each", people/2, rooms.of, each)
		if each > rooms.mostKiB {
			s.t.Errorf("a socket in a room of %d costs %d KiB, want %d at most", rooms.of, each, rooms.mostKiB)
		}
	}
}

// hold lets people join rooms of that size and stay until the test ends.
func (s *stage) hold(people, perRoom int, name string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*patience)
	s.t.Cleanup(cancel)
	work := make(chan int)
	var joining, reading sync.WaitGroup
	s.t.Cleanup(reading.Wait)
	for range 8 {
		joining.Go(func() {
			for i := range work {
				conn, answer, err := s.joinPatiently(ctx, s.token(fmt.Sprint(name, i/perRoom), fmt.Sprint(name, i)))
				if err != nil {
					s.t.Errorf("person %d: %v", i, err)
					continue
				}
				if _, ok := answer.(*wire.Joined); !ok {
					s.t.Errorf("person %d is told %+v", i, answer)
				}
				reading.Go(func() { _, _ = lastWord(ctx, conn) }) // Pings are answered meanwhile.
				s.t.Cleanup(func() { _ = conn.CloseNow() })
			}
		})
	}
	for i := range people {
		work <- i
	}
	close(work)
	joining.Wait()
}

// joinPatiently tries again when it is told to, as a client does: a busy machine may keep the store waiting.
func (s *stage) joinPatiently(ctx context.Context, token string) (*websocket.Conn, wire.Message, error) {
	return s.joinOnceServed(ctx, token, func(refusal *wire.Error) bool { return refusal.Retryable })
}

// storeIsBusy: no attack is behind it that fills what is bounded.
func storeIsBusy(refusal *wire.Error) bool {
	return refusal.Retryable && (refusal.Code == wire.CodeStoreUnavailable || refusal.Code == wire.CodeNotReady)
}

// joinOnceServed tries again after some refusals.
func (s *stage) joinOnceServed(ctx context.Context, token string, again func(*wire.Error) bool) (*websocket.Conn, wire.Message, error) {
	for {
		conn, answer, err := s.join(ctx, token, "")
		refusal, refused := answer.(*wire.Error)
		if !refused || !again(refusal) {
			return conn, answer, err
		}
		_ = conn.CloseNow()
		if !backoff.Sleep(ctx, time.Duration(refusal.RetryAfterMs)*time.Millisecond) {
			return nil, nil, ctx.Err()
		}
	}
}

// slowRequests sends the headers of requests byte by byte. Each connection is given up after 5 s.
func slowRequests(s *stage) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var slow sync.WaitGroup
	address := s.address("signaling-1", "http")
	for i := range 400 {
		conn := s.dial("tcp", address)
		slow.Go(func() {
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for sent, text := 0, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "; ; sent++ {
				next := "x"
				if sent < len(text) {
					next = text[sent : sent+1]
				}
				if _, err := io.WriteString(conn, next); err != nil {
					return // given up
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					s.t.Errorf("request %d is still waited for", i)
					return
				}
			}
		})
		if i%100 == 99 {
			s.newcomer(fmt.Sprint("newcomer-", i))
		}
	}
	slow.Wait()
}

// checksOfChecks: somebody who may only watch asks for connection tests, and with the token of each test for more.
func checksOfChecks(s *stage) {
	grant := access.Everything("peeper", "peeped")
	grant.CanPublish = false
	token, err := s.keys.Mint("", grant, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	const enough = 100
	began, tokens := time.Now(), []string{token}
	for range 20 {
		for _, asking := range tokens {
			if made := s.check(asking); made != "" && len(tokens) < enough {
				tokens = append(tokens, made)
			}
		}
	}
	checks := tokens[1:]
	s.t.Logf("%d checks in %v", len(checks), time.Since(began))
	if most := 6 + int(time.Since(began)/(10*time.Second)); len(checks) > most {
		s.t.Errorf("%d checks, want %d at most", len(checks), most)
	}
	for _, made := range checks {
		if got, err := s.keys.Verify(made); err != nil || got.CanPublish || got.Identity != "peeper" || time.Until(got.Expires) > 3*time.Minute {
			s.t.Errorf("a check grants %+v, %v", got, err)
		}
	}
}

// check returns the token of a connection test, or nothing if it is refused.
func (s *stage) check(asking string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/api/v1/check", http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+asking)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Token string }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	return answer.Token
}

// sixtyJoins: somebody with a token for every room comes 60 times a second for 6 s, half of the times into the call's
// room and half into new ones, and drops each socket without a word. What he leaves behind is bounded by the quotas and
// not by his haste.
func sixtyJoins(s *stage) {
	token := s.token("", "eve")
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var joins sync.WaitGroup
	var in, refused atomic.Int64
	began := time.Now()
	tick := time.NewTicker(time.Second / 60)
	defer tick.Stop()
	for i := range 360 {
		<-tick.C
		room := bystanderRoom
		if i%2 == 0 {
			room = fmt.Sprint("eves-", i)
		}
		joins.Go(func() {
			conn, answer, err := s.join(ctx, token, room)
			if err != nil {
				s.t.Errorf("join %d: %v", i, err)
				return
			}
			defer func() { _ = conn.CloseNow() }()
			if _, ok := answer.(*wire.Joined); ok {
				in.Add(1)
			} else if fault, ok := answer.(*wire.Error); ok && (fault.Code == wire.CodeTooManySockets || storeIsBusy(fault)) {
				refused.Add(1)
			} else {
				s.t.Errorf("join %d is told %+v", i, answer)
			}
		})
		if i%90 == 0 {
			s.newcomer(fmt.Sprint("newcomer-", i))
		}
	}
	joins.Wait()
	seconds := int(time.Since(began)/time.Second) + 1
	rooms := 0
	for _, room := range s.rooms() {
		if strings.HasPrefix(room.Room, "eves-") {
			rooms++
		}
	}
	s.t.Logf("in %d s %d joins got in and %d were refused; %d rooms are left", seconds, in.Load(), refused.Load(), rooms)
	if most := 20 + seconds; rooms > most {
		s.t.Errorf("%d new rooms, want %d at most", rooms, most)
	}
	if most := 100 + 10*seconds; int(in.Load()) > most {
		s.t.Errorf("%d joins got in, want %d at most", in.Load(), most)
	}
}

// slowReaders are fifty people who read nothing and shout all the time. What waits for each is bounded, and they are cut
// off for it. The last few hear too little from each other to have much waiting.
func slowReaders(s *stage) {
	const people, cut = 50, 26
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*patience)
	defer cancel()
	small := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			err = tcp.SetReadBuffer(4 << 10)
		}
		return conn, err
	}}}
	line, err := wire.Encode(&wire.Say{Text: strings.Repeat("x", 2000)})
	if err != nil {
		s.t.Fatal(err)
	}
	var shouting sync.WaitGroup
	defer shouting.Wait()
	defer cancel()
	for i := range people {
		conn, err := socket(ctx, s.url, small)
		if err == nil {
			s.t.Cleanup(func() { _ = conn.CloseNow() })
			err = write(ctx, conn, &wire.Join{Token: s.token("shouters", fmt.Sprint("shouter-", i))})
		}
		if err != nil {
			s.t.Fatal(err)
		}
		shouting.Go(func() {
			tick := time.NewTicker(time.Second / 5)
			defer tick.Stop()
			for ctx.Err() == nil && conn.Write(ctx, websocket.MessageText, line) == nil {
				<-tick.C
			}
		})
	}
	// What they shout takes both cores.
	testkit.Within(s.t, 3*patience, "most of them are cut off", func() error {
		said, err := s.cluster.Logs(ctx, "signaling-1")
		if n := strings.Count(said, "the client reads too slowly"); err == nil && n < cut {
			err = fmt.Errorf("%d of them so far", n)
		}
		return err
	})
}

// tenThousandSockets never say join, and are never closed. The node keeps those who came last, and people get in between
// them.
func tenThousandSockets(s *stage) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		s.t.Fatal(err)
	}
	sockets := min(10_000, int(min(files.Cur, 1<<20))-1000)
	address := s.address("signaling-1", "http")
	for i := range sockets {
		s.upgrade(address)
		if i%2000 == 1999 {
			s.newcomer(fmt.Sprint("newcomer-", i))
		}
	}
	s.t.Logf("%d sockets", sockets)
}
