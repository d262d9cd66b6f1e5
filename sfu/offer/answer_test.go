package offer

import (
	"strings"
	"testing"
)

func TestDirections(t *testing.T) {
	slots := map[string]Slot{"1": {SSRC: 5, RTXSSRC: 6, Stream: "s", Track: "t", CNAME: "c"}}
	for _, c := range []struct {
		name, text string
		answer     Answer
		want       [2]string
	}{
		{"everything", plainOffer, Answer{CanPublish: true, CanSubscribe: true, Slots: slots}, [2]string{"recvonly", "sendonly"}},
		{"no publishing", plainOffer, Answer{CanSubscribe: true, Slots: slots}, [2]string{"inactive", "sendonly"}},
		{"no subscribing", plainOffer, Answer{CanPublish: true, Slots: slots}, [2]string{"recvonly", "inactive"}},
		{"no slot", plainOffer, Answer{CanPublish: true, CanSubscribe: true}, [2]string{"recvonly", "inactive"}},
		{"both ways", edited("sendonly", "sendrecv"), Answer{CanPublish: true}, [2]string{"recvonly", "inactive"}},
		{"nothing offered", edited("recvonly", "inactive"), Answer{CanPublish: true, CanSubscribe: true, Slots: slots}, [2]string{"recvonly", "inactive"}},
	} {
		answer := mustRead(t, c.text).Answer(&c.answer)
		sections := strings.Split(answer, "m=")[1:]
		for i, section := range sections {
			if !strings.Contains(section, "a="+c.want[i]+"\r\n") || strings.Contains(section, "a=ssrc") != (c.want[i] == "sendonly") {
				t.Errorf("%s: want %v, answered\n%s", c.name, c.want, answer)
			}
		}
	}
}

func TestRepairsNeedAPayloadType(t *testing.T) {
	slots := map[string]Slot{"1": {SSRC: 5, RTXSSRC: 6, Stream: "s", Track: "t", CNAME: "c"}}
	without := mustRead(t, plainOffer).Answer(&Answer{CanSubscribe: true, Slots: slots})
	if strings.Contains(without, "FID") || !strings.Contains(without, "a=msid:s t\r\na=ssrc:5 cname:c\r\n") {
		t.Errorf("without RTX:\n%s", without)
	}
	with := mustRead(t, strings.Replace(edited("SAVPF 96", "SAVPF 96 97"), "a=rtpmap:96", "a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\na=rtpmap:96", 1)).
		Answer(&Answer{CanSubscribe: true, Slots: slots})
	if !strings.Contains(with, "a=ssrc-group:FID 5 6\r\na=ssrc:5 cname:c\r\na=ssrc:6 cname:c\r\n") {
		t.Errorf("with RTX:\n%s", with)
	}
}

func TestCandidatesStandInTheFirstAcceptedLine(t *testing.T) {
	o := mustRead(t, edited("opus", "other"))
	answer := o.Answer(answerTo(o))
	sections := strings.Split(answer, "m=")
	want := "a=candidate:1 1 udp 2130706431 2001:db8::7 7000 typ host\r\na=candidate:2 1 udp 2130706175 203.0.113.7 7000 typ host\r\n" +
		"a=candidate:3 1 tcp 1520435199 2001:db8::7 7001 typ host tcptype passive\r\na=candidate:4 1 tcp 1520434943 203.0.113.7 7001 typ host tcptype passive\r\na=end-of-candidates\r\n"
	if strings.Contains(sections[1], "candidate") || !strings.Contains(sections[2], want) || !strings.Contains(sections[0], "a=group:BUNDLE 1\r\n") {
		t.Errorf("answered\n%s", answer)
	}
	if !strings.HasPrefix(sections[1], "audio 0 UDP/TLS/RTP/SAVPF 111\r\n") {
		t.Errorf("the first m-line is not rejected:\n%s", answer)
	}
	none := mustRead(t, strings.NewReplacer("opus", "other", "VP8", "other").Replace(plainOffer))
	if answer := none.Answer(answerTo(none)); strings.Contains(answer, "BUNDLE") || strings.Contains(answer, "candidate") {
		t.Errorf("nothing is accepted, but the answer is\n%s", answer)
	}
}
