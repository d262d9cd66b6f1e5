package sfu

import (
	"maps"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// An application changes a person's name, metadata, attributes and permissions in mid-call. The media node decides; the person's signaling
// node is told, and says it at every later attach, here or at another node.

// update changes a peer for an application, and reports whether the others are to be told.
func (a *acts) update(p *peer, u *control.Update) bool {
	entry := rosterCopy(p.entry)
	if u.Name != nil {
		entry.Name = u.GetName()
	}
	if u.Metadata != nil {
		entry.Metadata = u.GetMetadata()
	}
	if len(u.GetAttributes()) > 0 {
		entry.Attributes = maps.Clone(entry.GetAttributes())
		if entry.Attributes == nil {
			entry.Attributes = map[string]string{}
		}
		maps.Copy(entry.Attributes, u.GetAttributes())
		maps.DeleteFunc(entry.Attributes, func(_, value string) bool { return value == "" })
	}
	if !entryFits(entry) {
		return false
	}
	p.granted = &control.Granted{Name: entry.GetName(), Metadata: entry.GetMetadata(), Attributes: entry.GetAttributes(), Permission: p.granted.GetPermission()}
	if u.GetPermission() != nil {
		p.granted.Permission = u.GetPermission()
		p.keepGranted()
		a.permit(p, entry)
	}
	changed := p.renew(entry) || p.entry.GetUnlisted() && p.canPublish
	a.tellGranted(p)
	return changed
}

// permit has the connection follow a changed permission, and mutes in entry, which nobody has yet, what may not be published.
func (a *acts) permit(p *peer, entry *control.Peer) {
	for _, source := range forward.Sources() {
		if p.forbidden()&sources.Bit(source) != 0 {
			setMuted(entry, source, true)
			a.media.SetMuted(p.id, source, true)
		}
	}
	if sending := p.sending(); sending != nil {
		sending.Permit(p.canPublish, p.sources)
		sending.Silence(entry.GetSilenced() | p.forbidden())
	}
}

// tellGranted tells the peer's signaling node what an application has changed, if it has changed anything.
func (a *acts) tellGranted(p *peer) {
	if p.granted != nil {
		a.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Granted{Granted: p.granted}})
	}
}

// keepGranted puts the permission that an application has changed over what an Attach said.
func (p *peer) keepGranted() {
	if may := p.granted.GetPermission(); may != nil {
		p.canPublish, p.sources = may.GetCanPublish() && !p.entry.GetHidden(), may.GetSources()
		p.canChat, p.canRename = may.GetCanChat(), may.GetCanRename()
	}
	p.mayData.Store(p.canChat && !p.entry.GetHidden())
}

// permission is what the peer may do now.
func (p *peer) permission() *control.Permission {
	return &control.Permission{CanPublish: p.canPublish, Sources: p.sources, CanChat: p.canChat, CanRename: p.canRename}
}

// published is the set of sources that the client has an m-line for.
func (p *peer) published() (set uint32) {
	for _, source := range forward.Sources() {
		if p.sending() == nil {
			continue
		}
		if mids, _, _ := p.sending().Sending(source); len(mids) > 0 {
			set |= sources.Bit(source)
		}
	}
	return set
}

// forbidden is the set of sources that the peer may not publish.
func (p *peer) forbidden() (set uint32) {
	for _, source := range forward.Sources() {
		if !p.canPublish || !sources.MayPublish(p.sources, source) {
			set |= sources.Bit(source)
		}
	}
	return set
}
