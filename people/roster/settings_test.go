package roster

import (
	"testing"
	"time"
)

// FuzzSettings: the store's text is read or refused, and a description that is read is written back as one that is read equal.
func FuzzSettings(f *testing.F) {
	f.Add("")
	f.Add("1795783230243000 12 1")
	f.Add("1795783230243000 -1  300 20 " + `{"metadata":"a b\n","made":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSettings(text)
		if err != nil {
			return
		}
		again, err := ParseDescription(s.Description.Encode())
		if err != nil || again != s.Description {
			t.Errorf("%q is %+v, and then %+v, %v", text, s.Description, again, err)
		}
	})
}

func TestADescriptionIsReadAsItWasWritten(t *testing.T) {
	want := Description{Metadata: "a 1 b\n\"", Made: 7, Empty: 5 * time.Minute, Departed: 20 * time.Second}
	got, err := ParseSettings("12 3 0 " + want.Encode())
	if err != nil || got.Version != 12 || got.Cap != 3 || got.Description != want {
		t.Errorf("it is read as %+v, %v", got, err)
	}
}
