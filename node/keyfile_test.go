package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAFileOfKeysIsReadAgain: what cannot be used leaves the keys in use, and is said once.
func TestAFileOfKeysIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "keys")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("one")
		ctx, cancel := context.WithCancel(t.Context())
		var applied []string
		var log strings.Builder
		ended := make(chan error, 1)
		go func() {
			ended <- watchKeyFile(ctx, file, "one", slog.New(slog.NewTextHandler(&log, nil)), func(text string) ([]string, error) {
				if text == "bad" {
					return nil, errors.New("these are no keys")
				}
				applied = append(applied, text)
				return []string{"mark of " + text}, nil
			})
		}()
		for _, text := range []string{"one", "two", "bad", "bad", "", "two", "three"} {
			if write(text); text == "" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(2*keyFileEvery + keyFileEvery/100) // in the bubble's time, and never with the tick
		}
		cancel()
		if err := <-ended; err != nil || !slices.Equal(applied, []string{"two", "three"}) {
			t.Fatalf("applied %q, %v", applied, err)
		}
		if n := strings.Count(log.String(), "these are no keys"); n != 1 {
			t.Errorf("the bad file is logged %d times", n)
		}
		if !strings.Contains(log.String(), "mark of three") || !strings.Contains(log.String(), "no such file") {
			t.Errorf("the log says %s", log.String())
		}
	})
}
