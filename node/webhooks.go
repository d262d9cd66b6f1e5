package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/webhook"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// askWanted is how often a media node asks the store whether webhooks are wanted.
const askWanted = 5 * time.Second

func (c *SignalingConfig) webhooks() webhook.Config {
	cfg := webhook.DefaultConfig()
	cfg.Receivers, cfg.Key = c.WebhookURL, c.WebhookKey
	return cfg
}

// checkWebhooks returns what is wrong with the flags. keys is nil if the API keys are at fault, too.
func (c *SignalingConfig) checkWebhooks(keys *access.Keyring) error {
	var faults []error
	for _, receiver := range c.WebhookURL {
		faults = append(faults, webhook.Check(receiver))
	}
	if c.WebhookKey != "" && len(c.WebhookURL) == 0 {
		faults = append(faults, errors.New("--webhook-key: there is no --webhook-url"))
	}
	if c.WebhookKey != "" && keys != nil && !slices.Contains(keys.Keys(), c.WebhookKey) {
		faults = append(faults, fmt.Errorf("--webhook-key: there is no API key named %q", c.WebhookKey))
	}
	return errors.Join(faults...)
}

// newWebhooks returns nil without a receiver.
func (n *signalingNode) newWebhooks(c *SignalingConfig, plan signalingPlan, guard *panics.Guard) *webhook.Sender {
	if len(c.WebhookURL) == 0 {
		return nil
	}
	return webhook.NewSender(c.webhooks(), plan.config.Node, n.store, plan.keys, n.events, guard, n.log)
}

// webhookStore knows whether webhooks are wanted.
type webhookStore interface {
	WebhooksWanted(ctx context.Context) (bool, error)
}

// followWebhooks tells the rosters whether webhooks are wanted, until ctx ends. While the store is silent, the last answer counts.
func followWebhooks(ctx context.Context, store webhookStore, tell func(wanted bool), log *slog.Logger) error {
	said := false
	for ctx.Err() == nil {
		if wanted, err := store.WebhooksWanted(ctx); err == nil {
			if wanted != said {
				said = wanted
				log.Info("facts for webhooks", "queued", wanted)
			}
			tell(wanted)
		}
		backoff.Sleep(ctx, askWanted)
	}
	return nil
}
