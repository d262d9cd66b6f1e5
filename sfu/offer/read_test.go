package offer

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	o := mustRead(t, plainOffer)
	if o.Origin != "42 sha-256 "+hash || o.Ufrag != "abcd" || o.Password != "abcdefghijklmnopqrstuvwx" || o.Setup != "actpass" || o.Slots() != 1 {
		t.Errorf("read %+v", o)
	}
	if f := o.Fingerprint; f.Algorithm != "sha-256" || len(f.Value) != 32 || f.Value[0] != 0x11 || f.Value[31] != 0 {
		t.Errorf("the fingerprint is %+v", f)
	}
	want := []Section{
		{MID: "0", Audio: true, Publishes: true, format: 111, Codecs: []Codec{
			{Name: "opus", MimeType: "audio/opus", Fmtp: "minptime=10;useinbandfec=1", ClockRate: 48000, Channels: 2, PayloadType: 111},
		}},
		{MID: "1", Receives: true, format: 96, Codecs: []Codec{{Name: "VP8", MimeType: "video/VP8", ClockRate: 90000, PayloadType: 96}}},
	}
	if !reflect.DeepEqual(o.Sections, want) {
		t.Errorf("the m-lines are %+v, want %+v", o.Sections, want)
	}
	if lines := mustRead(t, strings.ReplaceAll(plainOffer, "\r\n", "\n")); !reflect.DeepEqual(lines, o) {
		t.Errorf("with line feeds alone %+v", lines)
	}
}

func TestOriginNamesTheConnection(t *testing.T) {
	first := mustRead(t, plainOffer)
	for name, other := range map[string]string{
		"another session":     edited("o=- 42 ", "o=- 43 "),
		"another certificate": edited(hash, hash[3:]+":00"),
	} {
		if got := mustRead(t, other); got.Origin == first.Origin {
			t.Errorf("an offer of %s has the origin %q too", name, got.Origin)
		}
	}
	restarted := strings.NewReplacer("o=- 42 2 ", "o=- 42 3 ", "abcd\r\n", "efgh\r\n").Replace(plainOffer)
	if got := mustRead(t, restarted); got.Origin != first.Origin || got.Ufrag != "efgh" {
		t.Errorf("an ICE restart has the origin %q, want %q", got.Origin, first.Origin)
	}
}

func TestWhereTheTransportStands(t *testing.T) {
	session := strings.Replace(plainOffer, "a=group", "a=ice-ufrag:wxyz\r\na=ice-pwd:session-session-session\r\na=setup:passive\r\na=group", 1)
	if o := mustRead(t, session); o.Ufrag != "wxyz" || o.Password != "session-session-session" || o.Setup != "passive" {
		t.Errorf("of the session: %+v", o)
	}
	// The m-line that named it was stopped: browsers name it in the next one then.
	stopped := strings.NewReplacer("m=audio 9", "m=audio 0", "BUNDLE 0 1", "BUNDLE 1", "a=recvonly\r\n",
		"a=recvonly\r\na=ice-ufrag:next\r\na=ice-pwd:next-next-next-next-next\r\na=fingerprint:SHA-256 "+hash+"\r\n").Replace(plainOffer)
	o := mustRead(t, stopped)
	if o.Ufrag != "next" || !o.Sections[0].Rejected || o.Sections[0].Publishes || o.Sections[1].Rejected || o.Fingerprint.Algorithm != "sha-256" {
		t.Errorf("of the second m-line: %+v", o)
	}
	two := edited("a=fingerprint", "a=fingerprint:sha-1 00:11\r\na=fingerprint")
	if o := mustRead(t, two); len(o.Fingerprint.Value) != 32 {
		t.Errorf("the fingerprint that cannot be checked was taken: %+v", o.Fingerprint)
	}
}

func TestRefusals(t *testing.T) {
	limits := Limits{SDPBytes: 2000, SlotsPerPeer: 1}
	for name, text := range map[string]string{
		"nothing":                 "",
		"too much":                plainOffer + strings.Repeat("a=x\r\n", 400),
		"no m-lines":              plainOffer[:strings.Index(plainOffer, "m=")],
		"no mid":                  edited("a=mid:1\r\n", ""),
		"an empty mid":            edited("a=mid:1", "a=mid:"),
		"a mid twice":             edited("a=mid:1", "a=mid:0"),
		"a long mid":              edited("a=mid:1", "a=mid:"+strings.Repeat("1", maxNameBytes+1)),
		"a mid of two words":      edited("a=mid:1", "a=mid:1 1"),
		"a mid with a bell":       edited("a=mid:1", "a=mid:1\a"),
		"two directions":          edited("a=recvonly", "a=recvonly\r\na=sendrecv"),
		"data":                    edited("m=video", "m=application"),
		"no port":                 edited("m=video 9", "m=video x"),
		"plain RTP":               edited("UDP/TLS/RTP/SAVPF", "RTP/AVP"),
		"no BUNDLE":               edited("a=group:BUNDLE", "a=group:BUNDLED"),
		"no fingerprint":          edited("a=fingerprint", "a=x"),
		"a short fingerprint":     edited(":"+hash[3:], ""),
		"a wrong fingerprint":     edited(hash, "XX"+hash[2:]),
		"a weak fingerprint":      edited("sha-256", "sha-1"),
		"no ICE password":         edited("a=ice-pwd", "a=x-pwd"),
		"a short ICE password":    edited("a=ice-pwd:abcdefg", "a=ice-pwd:"),
		"a long ICE ufrag":        edited("a=ice-ufrag:", "a=ice-ufrag:"+strings.Repeat("u", 256)),
		"a setup that is no role": edited("actpass", "holdconn"),
		"two clients of DTLS":     edited("actpass", "active"),
		"too many slots":          edited("a=sendonly", "a=recvonly"),
		"no session id":           edited("o=- 42", "o=- -42"),
		"no o= line":              edited("o=- 42 2 IN IP4 127.0.0.1\r\n", ""),
		"another version":         edited("v=0", "v=1"),
		"prose":                   "hello",
		"prose in the middle":     edited("a=sendonly", "hello"),
	} {
		if _, err := Read(text, limits); !errors.Is(err, ErrBad) || strings.Contains(err.Error(), "\a") {
			t.Errorf("an offer with %s: %v, want ErrBad", name, err)
		}
	}
	if _, err := Read(plainOffer, limits); err != nil {
		t.Errorf("the offer itself: %v", err)
	}
	var many strings.Builder
	many.WriteString(plainOffer)
	for i := range maxSections {
		many.WriteString("m=audio 0 UDP/TLS/RTP/SAVPF 0\r\na=mid:x" + strconv.Itoa(i) + "\r\n")
	}
	if _, err := Read(many.String(), plenty()); !errors.Is(err, ErrBad) {
		t.Errorf("%d m-lines beside the slot: %v", maxSections+1, err)
	}
}

func TestExtends(t *testing.T) {
	before := []Section{{MID: "0", Audio: true, Publishes: true}, {MID: "1"}, {MID: "2", Receives: true}}
	for _, c := range []struct {
		name  string
		lines []Section
		want  bool
	}{
		{"the same", before, true},
		{"more", append(slices.Clone(before), Section{MID: "3"}), true},
		{"another direction", []Section{{MID: "0", Audio: true}, {MID: "1"}, {MID: "2", Publishes: true}}, true},
		{"a stopped line used again", []Section{before[0], {MID: "7", Receives: true}, before[2]}, true},
		{"fewer", before[:2], false},
		{"swapped", []Section{before[2], before[1], before[0]}, false},
		{"another kind", []Section{{MID: "0", Publishes: true}, before[1], before[2]}, false},
		{"data in place of a slot", []Section{before[0], before[1], {MID: "2", Data: true}}, false},
	} {
		if err := (&Offer{Sections: c.lines}).Extends(before); (err == nil) != c.want || err != nil && !errors.Is(err, ErrBad) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	data := []Section{{MID: "0", Data: true}}
	if err := (&Offer{Sections: []Section{{MID: "1"}}}).Extends(data); !errors.Is(err, ErrBad) {
		t.Errorf("a line of data was dropped: %v", err)
	}
	data[0].Rejected = true
	if err := (&Offer{Sections: []Section{{MID: "1"}}}).Extends(data); err != nil {
		t.Errorf("a rejected line of data was used again: %v", err)
	}
}
