package nodelink

import (
	"context"
	"time"

	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
)

const (
	askPatience = time.Second
	askTogether = 100
	// Who is not asked for counts as unknown.
	maxAsked = 4096
)

// Users says who is online in the cluster.
type Users interface {
	Ask(ctx context.Context, users []string) ([]presence.Status, error)
}

// Ask is part of messaging.Presence.
func (l *Links) Ask(user messaging.UserID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asked) < maxAsked {
		l.asked[user] = struct{}{}
	}
	wake(l.questions)
}

// answer asks the store for many users at once.
func (l *Links) answer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.questions:
		}
		for users := l.take(); len(users) > 0; users = l.take() {
			l.panics.Catch(l.log, "a question of direct messages broke", func() { l.ask(ctx, users) })
		}
	}
}

func (l *Links) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var users []string
	for user := range l.asked {
		if len(users) == askTogether {
			break
		}
		delete(l.asked, user)
		users = append(users, string(user))
	}
	return users
}

func (l *Links) ask(ctx context.Context, users []string) {
	known := make(map[string]bool, len(users)) // whether online
	defer func() {
		for _, user := range users {
			online, ok := known[user]
			l.Node.Online(messaging.UserID(user), online, ok)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	found, err := l.users.Ask(ctx, users)
	if err != nil {
		l.log.Debug("receivers of direct messages are not asked for", "error", err)
	}
	for _, status := range found {
		if status.State != presence.Unknown {
			known[status.User] = status.State == presence.Online
		}
	}
}
