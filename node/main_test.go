package node

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// slackEnv makes the test binary the process of TestTimerSlackIsOfAllThreads.
const slackEnv = "HOLDFAST_TEST_TIMER_SLACK"

func TestMain(m *testing.M) {
	if slack := os.Getenv(slackEnv); slack != "" {
		saySlack(slack)
		return
	}
	goleak.VerifyTestMain(m)
}
