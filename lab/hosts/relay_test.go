package hosts

import (
	"encoding/binary"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source gives one frame each Read, and ends with its channel.
type source chan []byte

func (s source) Read(p []byte) (int, error) {
	content, more := <-s
	if !more {
		return 0, io.EOF
	}
	return copy(p, content), nil
}

// arrival is when a frame came out.
type arrival struct {
	number uint32
	after  time.Duration
}

type sink struct {
	began time.Time
	came  []arrival
}

func (s *sink) Write(p []byte) (int, error) {
	s.came = append(s.came, arrival{binary.BigEndian.Uint32(p), time.Since(s.began)})
	return len(p), nil
}

func numbered(number uint32, bytes int) []byte {
	return append(binary.BigEndian.AppendUint32(nil, number), make([]byte, bytes-4)...)
}

// TestARelayKeepsOrderAndTime and, when it ends, sends at once what it holds.
func TestARelayKeepsOrderAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 200 * time.Millisecond
		in, out, hurry := make(source), &sink{began: time.Now()}, make(chan struct{})
		r := newRelay(in, out, delay)
		done := make(chan struct{})
		go func() { r.run(hurry); close(done) }()
		for i := range uint32(3) {
			in <- numbered(i, 100)
			<-time.After(50 * time.Millisecond)
		}
		<-time.After(time.Second)
		in <- numbered(3, 100)
		synctest.Wait()
		close(hurry)
		close(in)
		<-done
		want := []arrival{{0, delay}, {1, delay + 50*time.Millisecond}, {2, delay + 100*time.Millisecond}, {3, 1150 * time.Millisecond}}
		if len(out.came) != len(want) {
			t.Fatalf("%d frames came out, want %d", len(out.came), len(want))
		}
		for i := range want {
			if out.came[i] != want[i] {
				t.Errorf("frame %d: %+v, want %+v", i, out.came[i], want[i])
			}
		}
	})
}

// TestAFullRelayDropsTheNewest by frames and by bytes.
func TestAFullRelayDropsTheNewest(t *testing.T) {
	for name, size := range map[string]int{"frames": 100, "bytes": maxFrameBytes} {
		synctest.Test(t, func(t *testing.T) {
			fit := min(maxHeldFrames, maxHeldBytes/size)
			in, out, hurry := make(source), &sink{began: time.Now()}, make(chan struct{})
			r := newRelay(in, out, time.Second)
			done := make(chan struct{})
			go func() { r.run(hurry); close(done) }()
			const more = 10
			for i := range fit + more {
				in <- numbered(uint32(i), size)
			}
			synctest.Wait()
			// The sender may have one in its hands besides.
			if dropped := r.dropped.Load(); dropped < more-1 || dropped > more {
				t.Errorf("%s: %d were dropped, want %d", name, dropped, more)
			}
			<-time.After(2 * time.Second)
			in <- numbered(99, size)
			close(hurry)
			close(in)
			<-done
			if last := out.came[len(out.came)-1]; last.number != 99 || len(out.came) != int(r.passed.Load()) {
				t.Errorf("%s: the last of %d is %+v", name, len(out.came), last)
			}
			for i := range len(out.came) - 1 {
				if out.came[i].number != uint32(i) {
					t.Fatalf("%s: frame %d came out as number %d", name, out.came[i].number, i)
				}
			}
		})
	}
}
