// Package renumber makes one RTP stream out of stretches of several.
//
// A Tracker extends the sequence numbers of a publisher's track. A Rewriter gives packets of one layer after another outgoing numbers that
// go on without a gap: sequence numbers, timestamps, the counters of VP8 and VP9 and the frame numbers of dependency descriptors. The
// numbers close over what is not sent, as long as nothing later was sent. It remembers what went out under which number, for NACKs.
//
// Nothing here is safe for concurrent use. It knows no packet's bytes, no layer but by its number, and no time.
package renumber
