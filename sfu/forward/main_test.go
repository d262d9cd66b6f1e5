package forward

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(receiverEnv) != "" {
		// This is the process that the benchmark starts for its subscribers.
		if err := runReceiver(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
