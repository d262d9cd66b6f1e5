package wire

import (
	"bytes"
	"errors"
	"fmt"
)

func (m *SendMessage) validate() error {
	switch m.Kind {
	case MessageText, MessageRing, MessageAnswer, MessageApp:
	default:
		return fmt.Errorf("kind %.20q is not text, ring, answer or app", string(m.Kind))
	}
	if m.Kind == MessageText && !bytes.HasPrefix(m.Body, []byte{'"'}) {
		return errors.New("body of a text is not a string")
	}
	return errors.Join(checkReceivers(m.To), checkBody(len(m.Body)), text("stream", m.Stream, 1, maxStreamBytes), number("seq", m.Seq, 1, maxInteger))
}

func checkBody(size int) error {
	if size > MaxBodyBytes {
		return fmt.Errorf("body has %d bytes, want at most %d", size, MaxBodyBytes)
	}
	return nil
}

func checkReceivers(users []string) error {
	if len(users) == 0 {
		return errors.New("to has no entries")
	}
	err := count("to", len(users), MaxReceivers)
	for _, user := range users {
		if err == nil {
			err = text("to", user, 1, maxUserBytes)
		}
	}
	return err
}

// CheckNotice does what Decode would have done, for callers that do not use Decode.
func CheckNotice(to []string, body []byte) error {
	if err := errors.Join(checkReceivers(to), checkBody(len(body))); err != nil {
		return fmt.Errorf("%w: message: %w", ErrMalformed, err)
	}
	return nil
}

func (m *Received) validate() error {
	err := count("upTo", len(m.UpTo), maxReceived)
	for _, mark := range m.UpTo {
		if err == nil {
			err = errors.Join(text("from", mark.From, 1, maxUserBytes), text("stream", mark.Stream, 1, maxStreamBytes), number("seq", mark.Seq, 0, maxInteger))
		}
	}
	return err
}
