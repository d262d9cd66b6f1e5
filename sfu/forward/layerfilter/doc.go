// Package layerfilter decides which packets of a scalable stream a subscriber is sent, so that what is sent can be decoded.
//
// Targets reads dependency descriptors, which tell everything. Temporal knows only what the payload descriptors of VP8 and VP9 tell. Both
// let a change wait until the receiver can follow it, and both give all packets of a frame one verdict, however late one comes.
//
// Nothing here is safe for concurrent use or allocates after NewTargets. It knows no slot, no rate and no path: the caller says which
// layers are wanted.
package layerfilter
