package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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
	var kinds []Type
	for _, heading := range []string{"Client to server", "Server to client"} {
		for _, row := range documented(t, heading) {
			kinds = append(kinds, row.types...)
		}
	}
	if len(kinds) < 20 {
		t.Fatalf("read only %d types from docs/PROTOCOL.md", len(kinds))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds) // one type goes both ways
}

type documentedRow struct {
	types  []Type
	fields string // the second cell
}

// documented reads the rows of the tables under a heading whose first cell holds words in backquotes.
func documented(t *testing.T, heading string) (rows []documentedRow) {
	t.Helper()
	_, text, found := strings.Cut(protocol(t), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/PROTOCOL.md has no heading %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		row := documentedRow{fields: cells[2]}
		for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
			row.types = append(row.types, Type(m[1]))
		}
		if row.types != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// TestFieldsAreThoseOfTheDocument: each field of each message stands in its row, those that may be missing with a question mark.
func TestFieldsAreThoseOfTheDocument(t *testing.T) {
	for heading, blank := range map[string]func(Type) (Message, []string){"Client to server": blankFromClient, "Server to client": blankFromServer} {
		for _, row := range documented(t, heading) {
			for _, kind := range row.types {
				m, _ := blank(kind)
				if m == nil {
					t.Errorf("%s: there is no %s", heading, kind)
					continue
				}
				if got, want := fieldsOf(row.fields), fieldsIn(reflect.TypeOf(m).Elem()); !slices.Equal(got, want) {
					t.Errorf("%s: %s has the fields\n%s, docs/PROTOCOL.md has\n%s", heading, kind, want, got)
				}
			}
		}
	}
	for _, object := range []any{Peer{}, Slot{}, Stream{}, Permissions{}, ICEServer{}, Lack{}, Sender{}, Want{}, Speaker{}, Reaction{}, StreamMark{}, UserPresence{}, InLine{}} {
		fields := fieldsIn(reflect.TypeOf(object))
		known := slices.ContainsFunc(strings.Split(protocol(t), "\n"), func(line string) bool {
			if !strings.HasPrefix(line, "| ") {
				return false
			}
			line = strings.NewReplacer("`", "", "{", " ", "}", " ", ",", " ", ". ", " ", " | ", " ").Replace(line)
			words := strings.Fields(line)
			return !slices.ContainsFunc(fields, func(name string) bool { return !slices.Contains(words, name) })
		})
		if !known {
			t.Errorf("no row of docs/PROTOCOL.md has all of %T: %s", object, fields)
		}
	}
}

// fieldsOf reads "`a`, `b`?".
func fieldsOf(cell string) []string {
	fields := regexp.MustCompile("`([A-Za-z]+)`(\\??)").FindAllStringSubmatch(cell, -1)
	names := make([]string, 0, len(fields))
	for _, m := range fields {
		names = append(names, m[1]+m[2])
	}
	slices.Sort(names)
	return names
}

// fieldsIn are those of a struct in JSON, embedded ones included.
func fieldsIn(of reflect.Type) []string {
	names := []string{}
	for field := range of.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			names = append(names, fieldsIn(field.Type)...)
		case name == "-": // It is not on the wire.
		case options == "omitempty":
			names = append(names, name+"?")
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
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
	doc, err := os.ReadFile("../../docs/API.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "## Codes")
	var inTable []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d+) \\| (yes|no) \\|").FindAllStringSubmatch(table, -1) {
		inTable = append(inTable, strings.Join(m[1:], " "))
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
	if got, want := strings.Join(known, "\n"), strings.Join(inTable, "\n"); got != want {
		t.Errorf("the code has\n%s\ndocs/API.md has\n%s", got, want)
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
		"path by pigeon":         {`{"type":"ping","t":1,"path":{"way":"pigeon"}}`, ErrMalformed},
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
	f.Add([]byte(`{"type":"mute","request":"1"}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if id := RequestOf(frame); len(id) > maxRequestBytes {
			t.Fatalf("a request of %d bytes", len(id))
		}
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

func TestARequestIsATextOfATopLevelField(t *testing.T) {
	tooLong := `{"type":"mute","request":"` + strings.Repeat("x", 65) + `"}`
	for frame, want := range map[string]RequestID{
		`{"type":"mute","request":"a"}`:             "a",
		`{"request":"a","type":"dance"}`:            "a",
		`{"type":"mute"}`:                           "",
		`{"type":"mute","request":7}`:               "",
		`{"type":"mute","request":null}`:            "",
		`{"type":"message","body":{"request":"a"}}`: "",
		tooLong:       "",
		`["request"]`: "",
		`"request`:    "",
	} {
		if got := RequestOf([]byte(frame)); got != want {
			t.Errorf("the request of %s is %q, want %q", frame, got, want)
		}
	}
}
