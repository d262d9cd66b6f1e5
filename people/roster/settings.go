package roster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxRoomMetadata bounds a room's metadata, in bytes. They are written with each change of the room's roster.
const MaxRoomMetadata = 4 << 10

// Description is what an application says of a room when it makes the room, or later.
type Description struct {
	// Metadata is the application's, opaque.
	Metadata string `json:"metadata,omitempty"`
	// Made is when an application made the room, in Unix milliseconds, or 0 if none did.
	Made int64 `json:"made,omitempty"`

	// Empty is how long the description lasts if nobody comes, and Departed after the last one has left.
	Empty    time.Duration `json:"-"`
	Departed time.Duration `json:"-"`
}

// Settings are those of a room's door as the store has them.
type Settings struct {
	// Version is 0 if there are no settings.
	Version uint64
	// Cap is 0 if the settings have none.
	Cap         int
	Description Description
}

var errSettings = errors.New("not the settings of a room")

// Encode is the text "<empty> <departed> <json>", in seconds: the store's scripts read the numbers.
func (d Description) Encode() string {
	text, err := json.Marshal(d)
	if err != nil { // a struct of texts and numbers
		return ""
	}
	return fmt.Sprintf("%d %d %s", int(d.Empty.Seconds()), int(d.Departed.Seconds()), text)
}

// ParseDescription reads what Encode wrote. Nothing is a Description without anything.
func ParseDescription(text string) (d Description, err error) {
	if text == "" {
		return d, nil
	}
	empty, rest, _ := strings.Cut(text, " ")
	departed, encoded, _ := strings.Cut(rest, " ")
	first, err1 := strconv.ParseUint(empty, 10, 31)
	second, err2 := strconv.ParseUint(departed, 10, 31)
	if err := errors.Join(err1, err2, json.Unmarshal([]byte(encoded), &d)); err != nil {
		return Description{}, fmt.Errorf("%w: %.40q", errSettings, text)
	}
	d.Empty, d.Departed = time.Duration(first)*time.Second, time.Duration(second)*time.Second
	return d, nil
}

// ParseSettings reads "<version> <cap> <closed> <description>", of which all but the version may be empty. Nothing is Settings of version 0.
func ParseSettings(text string) (s Settings, err error) {
	if text == "" {
		return s, nil
	}
	const fields = 4
	parts := strings.SplitN(text, " ", fields)
	s.Version, err = strconv.ParseUint(parts[0], 10, 64)
	if len(parts) > 1 {
		// -1 lifts the cap that tokens and the server name.
		most, unset := strconv.Atoi(parts[1])
		if unset == nil {
			s.Cap = max(most, 0)
		}
	}
	if err == nil && len(parts) == fields {
		s.Description, err = ParseDescription(parts[fields-1])
	}
	if err != nil {
		return Settings{}, fmt.Errorf("%w: %.40q", errSettings, text)
	}
	return s, nil
}
