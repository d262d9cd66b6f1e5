package devcluster

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestWhatTheTerminalShows(t *testing.T) {
	const moment = `"time":"2026-01-02T03:04:05.006Z",`
	tests := []struct {
		name, line, quiet, verbose string
	}{
		{
			"a step of a failover", `{` + moment + `"level":"INFO","msg":"room re-homed","process":"signaling-1","room":"blue","epoch":1795254712102}`,
			"", "03:04:05.006  sfu-1        room re-homed  epoch=1795254712102  room=blue\n",
		},
		{"an ordinary line", `{` + moment + `"level":"INFO","msg":"member joined"}`, "", "03:04:05.006  sfu-1        member joined\n"},
		{"an error", `{` + moment + `"level":"ERROR","msg":"no store"}`, "03:04:05.006  sfu-1        ERROR no store\n", "same"},
		{
			"what a stranger said", `{` + moment + `"level":"ERROR","msg":"refused","error":"\u001b[2J\u202e"}`,
			`03:04:05.006  sfu-1        ERROR refused  error="\x1b[2J\u202e"` + "\n", "same",
		},
		{"a crash", `goroutine 1 [running]:`, "sfu-1        | goroutine 1 [running]:\n", "same"},
		{"JSON that is no log", `{"a":1}`, "sfu-1        | {\"a\":1}\n", "same"},
		{"nothing", "", "", ""},
	}
	for _, test := range tests {
		if test.verbose == "same" {
			test.verbose = test.quiet
		}
		for verbose, want := range map[bool]string{false: test.quiet, true: test.verbose} {
			var shown bytes.Buffer
			out := newTerminal(&shown)
			(&narrator{name: "sfu-1", verbose: verbose, out: out}).show([]byte(test.line))
			out.close()
			if shown.String() != want {
				t.Errorf("%s, verbose %t: shown %q, want %q", test.name, verbose, shown.String(), want)
			}
		}
	}
}

// TestALogbookKeepsWholeLines, however they arrive, and reads the end of a long log.
func TestALogbookKeepsWholeLines(t *testing.T) {
	lines := 0
	log, err := openLogbook(t.TempDir(), "n", func([]byte) { lines++ })
	if err != nil {
		t.Fatal(err)
	}
	defer log.close()
	text := strings.Repeat("x", logTailBytes/16) + "\n"
	for range 20 {
		log.Write([]byte(text[:7]))
		log.Write([]byte(text[7:]))
	}
	if kept := log.text(); lines != 20 || len(kept) != logTailBytes || !strings.HasSuffix(kept, text) {
		t.Errorf("%d lines shown, %d bytes read", lines, len(kept))
	}
	log.written = logFileBytes
	log.Write([]byte("more"))
	if kept := log.text(); !strings.HasSuffix(kept, "later lines are dropped\n") {
		t.Errorf("a full log ends with %q", kept[len(kept)-50:])
	}
}

func TestValidateListsEveryFault(t *testing.T) {
	err := Options{SFU: 0, Signaling: 33, Redis: "x", Listen: "y", MediaHost: "example", RoomPeople: -1, NodeEnv: map[string][]string{"n": {"z"}}}.Validate()
	for _, want := range []string{"--sfu", "--signaling", "--redis", "--listen", "--media-host", "--room-people", "--node-env"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the faults do not mention %s: %v", want, err)
		}
	}
	if err := Defaults().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

// TestEveryRunOfAMediaNodeTakesLargeRooms, also one after a kill, which has no NodeEnv.
func TestEveryRunOfAMediaNodeTakesLargeRooms(t *testing.T) {
	o := Defaults()
	if args := strings.Join(o.args("state"), " "); strings.Contains(args, "--room-people") {
		t.Errorf("without a number: %s", args)
	}
	o.RoomPeople = 3000
	if args := strings.Join(o.args("state"), " "); !strings.Contains(args, "--room-people 3000") {
		t.Errorf("the supervisor is started with %s", args)
	}
	s := New(o)
	if env := s.environment(RoleSFU); !slices.Contains(env, "HOLDFAST_ROOM_PEOPLE=3000") {
		t.Errorf("a media node is started with %d variables, not with the number", len(env))
	}
	if env := s.environment(RoleSignaling); slices.Contains(env, "HOLDFAST_ROOM_PEOPLE=3000") {
		t.Error("a signaling node is told")
	}
}

// TestEveryRunOfAMediaNodeStandsBy, also one after a kill.
func TestEveryRunOfAMediaNodeStandsBy(t *testing.T) {
	const variable = "HOLDFAST_STANDBY=true"
	for _, wanted := range []bool{false, true} {
		o := Defaults()
		o.Standby = wanted
		if told := slices.Contains(o.args("state"), "--standby"); told != wanted {
			t.Errorf("wanted %v, and the supervisor is told %v", wanted, told)
		}
		s := New(o)
		if told := slices.Contains(s.environment(RoleSFU), variable); told != wanted {
			t.Errorf("wanted %v, and a media node is told %v", wanted, told)
		}
		if slices.Contains(s.environment(RoleSignaling), variable) {
			t.Error("a signaling node is told")
		}
	}
}
