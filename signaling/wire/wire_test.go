package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGoldenMessagesRoundTrip reads every golden file and writes it back byte
// for byte: a renamed, lost or reordered field of any struct fails here.
func TestGoldenMessagesRoundTrip(t *testing.T) {
	seen := map[Type]bool{}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		golden, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// One type goes both ways; the client's has a golden file of its own.
		name, fromClient := strings.CutSuffix(filepath.Base(file), ".client.json")
		m, err := DecodeServer(golden)
		if fromClient || errors.Is(err, ErrUnknownType) {
			m, err = Decode(golden)
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if want := Type(strings.TrimSuffix(name, ".json")); m.kind() != want {
			t.Errorf("%s holds a %s", file, m.kind())
		}
		seen[m.kind()] = true
		var want bytes.Buffer
		if err := json.Compact(&want, golden); err != nil {
			t.Fatal(err)
		}
		got, err := Encode(m)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is written back as\n%s (%v), want\n%s", file, got, err, want.Bytes())
		}
	}
	for _, kind := range typesOfProtocol(t) {
		if !seen[kind] {
			t.Errorf("docs/PROTOCOL.md has %s, which has no golden file", kind)
		}
		delete(seen, kind)
	}
	for kind := range seen {
		t.Errorf("%s has a golden file but is not in docs/PROTOCOL.md", kind)
	}
}

// typesOfProtocol reads the first column of the tables of messages.
func typesOfProtocol(t *testing.T) []Type {
	t.Helper()
	doc := protocol(t)
	doc, _, _ = strings.Cut(doc, "## Tokens")
	var kinds []Type
	for line := range strings.Lines(doc) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
			kinds = append(kinds, Type(m[1]))
		}
	}
	if len(kinds) < 20 {
		t.Fatalf("read only %d types from docs/PROTOCOL.md", len(kinds))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds) // one type goes both ways
}

func protocol(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

func TestCodesAreThoseOfTheDocument(t *testing.T) {
	_, doc, _ := strings.Cut(protocol(t), "## Codes")
	doc, _, _ = strings.Cut(doc, "\n## ")
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d+) \\| (yes|no) \\|").FindAllStringSubmatch(doc, -1) {
		documented = append(documented, strings.Join(m[1:], " "))
	}
	var known []string
	for _, row := range meanings() {
		retryable := map[bool]string{true: "yes", false: "no"}[row.Retryable]
		known = append(known, fmt.Sprintf("%s %d %s", row.Code, row.Status, retryable))
		if row.Sentence == "" {
			t.Errorf("%s has no sentence", row.Code)
		}
		if MeaningOf(row.Code) != row {
			t.Errorf("MeaningOf(%s) = %v", row.Code, MeaningOf(row.Code))
		}
	}
	if got, want := strings.Join(known, "\n"), strings.Join(documented, "\n"); got != want {
		t.Errorf("the code has\n%s\ndocs/PROTOCOL.md has\n%s", got, want)
	}
	if MeaningOf("nonsense").Code != CodeInternal {
		t.Error("a code outside the table is not internal")
	}
}

func TestDecodeRefuses(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	slots := strings.TrimSuffix(strings.Repeat(`{"mid":"1","kind":"audio","peer":"","source":""},`, maxSlots+1), ",")
	senders := strings.TrimSuffix(strings.Repeat(`{"mid":"0","source":"camera"},`, maxSenders+1), ",")
	wants := strings.TrimSuffix(strings.Repeat(`{"peer":"p","source":"camera","width":1,"height":1},`, MaxWants+1), ",")
	for name, tc := range map[string]struct {
		frame string
		want  error
	}{
		"nothing":                {``, ErrMalformed},
		"null":                   {`null`, ErrMalformed},
		"an array":               {`[{"type":"leave"}]`, ErrMalformed},
		"half an object":         {`{"type":"leave"`, ErrMalformed},
		"two objects":            {`{"type":"leave"}{"type":"leave"}`, ErrMalformed},
		"no type":                {`{"t":1}`, ErrMalformed},
		"a number as type":       {`{"type":1}`, ErrMalformed},
		"not UTF-8":              {"{\"type\":\"join\",\"token\":\"\xff\"}", ErrMalformed},
		"too long":               {`{"type":"leave","pad":"` + long(MaxMessageBytes) + `"}`, ErrMalformed},
		"an unknown type":        {`{"type":"dance"}`, ErrUnknownType},
		"a server's type":        {`{"type":"joined"}`, ErrUnknownType},
		"a type in capitals":     {`{"type":"Leave"}`, ErrUnknownType},
		"join with number":       {`{"type":"join","token":"x","name":7}`, ErrMalformed},
		"resume as attempt 1":    {`{"type":"resume","resume":"x","attempt":1}`, ErrMalformed},
		"resume past any":        {`{"type":"resume","resume":"x","attempt":4294967296}`, ErrMalformed},
		"resume minus one":       {`{"type":"resume","resume":"x","attempt":-1}`, ErrMalformed},
		"resume as text":         {`{"type":"resume","resume":"x","attempt":"2"}`, ErrMalformed},
		"offer without fresh":    {`{"type":"offer","id":"1","sdp":"v=0","senders":[]}`, ErrMalformed},
		"offer's senders null":   {`{"type":"offer","id":"1","sdp":"v=0","fresh":true,"senders":null}`, ErrMalformed},
		"offer's source":         {`{"type":"offer","id":"1","sdp":"v=0","fresh":true,"senders":[{"mid":"0","source":"nose"}]}`, ErrMalformed},
		"offer's ssrc":           {`{"type":"offer","id":"1","sdp":"v=0","fresh":true,"senders":[{"mid":"0","source":"camera","ssrc":4294967296}]}`, ErrMalformed},
		"offer's sdp":            {`{"type":"offer","id":"1","sdp":"` + long(maxSDPBytes+1) + `","fresh":true,"senders":[]}`, ErrMalformed},
		"offer's slots":          {`{"type":"offer","id":"1","sdp":"v=0","fresh":true,"senders":[],"slots":[` + slots + `]}`, ErrMalformed},
		"offer's senders":        {`{"type":"offer","id":"1","sdp":"v=0","fresh":true,"senders":[` + senders + `]}`, ErrMalformed},
		"view of a crowd":        {`{"type":"view","wants":[` + wants + `]}`, ErrMalformed},
		"offer's slot's kind":    {`{"type":"offer","id":"1","sdp":"v","fresh":true,"senders":[],"slots":[{"mid":"1","kind":"","peer":"","source":""}]}`, ErrMalformed},
		"view of a huge wall":    {`{"type":"view","wants":[{"peer":"p","source":"camera","width":99999,"height":1}]}`, ErrMalformed},
		"view of nobody":         {`{"type":"view","wants":[{"peer":"","source":"camera","width":1,"height":1}]}`, ErrMalformed},
		"mute without muted":     {`{"type":"mute","source":"camera"}`, ErrMalformed},
		"rename without a name":  {`{"type":"rename"}`, ErrMalformed},
		"rename to nothing":      {`{"type":"rename","name":""}`, ErrMalformed},
		"rename to a novel":      {`{"type":"rename","name":"` + long(MaxNameBytes+1) + `"}`, ErrMalformed},
		"mute of the kitchen":    {`{"type":"mute","source":"kitchen","muted":true}`, ErrMalformed},
		"migrated and lost what": {`{"type":"migrated","epoch":1,"attempt":1,"how":"restart","gapMs":1,"lost":[{"peer":"p","source":"nose"}]}`, ErrMalformed},
		"migrated by foot":       {`{"type":"migrated","epoch":1,"attempt":1,"how":"foot","gapMs":1}`, ErrMalformed},
		"chat of nothing":        {`{"type":"chat","text":" \n "}`, ErrMalformed},
		"chat without text":      {`{"type":"chat","id":"1"}`, ErrMalformed},
		"a book as chat":         {`{"type":"chat","text":"` + strings.Repeat("é", maxChatRunes+1) + `"}`, ErrMalformed},
		"chat with a long id":    {`{"type":"chat","text":"x","id":"` + long(maxChatIDBytes+1) + `"}`, ErrMalformed},
		"moderate by dancing":    {`{"type":"moderate","act":"dance"}`, ErrMalformed},
		"moderate nobody":        {`{"type":"moderate","act":"remove"}`, ErrMalformed},
		"mute by a moderator":    {`{"type":"moderate","act":"mute","peer":"p"}`, ErrMalformed},
		"a hand of no height":    {`{"type":"hand"}`, ErrMalformed},
		"reaction of a word":     {`{"type":"reaction","emoji":"yes"}`, ErrMalformed},
		"ping out of range":      {`{"type":"ping","t":1e300}`, ErrMalformed},
	} {
		if m, err := Decode([]byte(tc.frame)); !errors.Is(err, tc.want) {
			t.Errorf("%s: Decode = %v, %v, want %v", name, m, err, tc.want)
		}
	}
}

func TestDecodeIgnoresWhatItDoesNotKnow(t *testing.T) {
	m, err := Decode([]byte(`{"type":"mute","source":"camera","muted":true,"why":{"deep":[1,2]},"v":2}`))
	if got, ok := m.(*Mute); err != nil || !ok || *got != (Mute{Source: SourceCamera, Muted: true}) {
		t.Fatalf("Decode = %v, %v", m, err)
	}
}

func TestNilListsAreWrittenAsEmpty(t *testing.T) {
	got, err := Encode(&Joined{Protocol: Version})
	if err != nil || !bytes.Contains(got, []byte(`"roster":[],"iceServers":[]`)) {
		t.Fatalf("Encode = %s, %v", got, err)
	}
}

// FuzzDecode looks for a panic, an error of no known sort, and a message that
// does not survive being written and read again.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		golden, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(golden)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		m, err := Decode(frame)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownType) {
				t.Fatalf("Decode(%q) = %v", frame, err)
			}
			return
		}
		first, err := Encode(m)
		if err != nil {
			t.Fatalf("Encode(%+v) = %v", m, err)
		}
		if len(first) > MaxMessageBytes {
			return // escapes made it longer than it came
		}
		again, err := Decode(first)
		if err != nil {
			t.Fatalf("Decode(%s) = %v", first, err)
		}
		if second, err := Encode(again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s became %s (%v)", first, second, err)
		}
	})
}
