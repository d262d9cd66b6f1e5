package relay

import (
	"maps"
	"time"

	"github.com/pion/stun/v4"
)

// retained is a secret that allocations may have been made with. Browsers renew with the credential that they allocated with,
// also after the cluster key of that secret was dropped.
type retained struct {
	secret []byte
	until  time.Time
}

// secretOf returns nil if the mark's secret does not count for the method.
func (r *Relay) secretOf(mark string, method stun.Method) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, secret := range r.config.Secrets() {
		if markOf(secret) != mark {
			continue
		}
		if method == stun.MethodAllocate {
			r.retained[mark] = retained{secret, now.Add(CredentialLife + r.config.MaxAge)}
		}
		return secret
	}
	maps.DeleteFunc(r.retained, func(_ string, old retained) bool { return now.After(old.until) })
	if method == stun.MethodAllocate {
		return nil
	}
	return r.retained[mark].secret
}
