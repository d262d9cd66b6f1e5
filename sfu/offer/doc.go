// Package offer reads the SDP offers of clients and writes the answers to them, for a media node that forwards VP8, H.264 and Opus over
// one ICE and DTLS transport.
//
// Everything read from an offer is bounded, and the cost of reading one is linear in its bytes. An Offer keeps nothing of the text.
// What an answer negotiates depends on the offer alone: a browser that moves its connection to another node refuses an
// answer whose codecs or header extensions differ from those of the node before, so a change here is a change of the interface
// between releases (testdata has the answers that must stay as they are).
//
// The package knows no network and keeps no state: which SSRCs, credentials and candidates an answer names is told to it.
package offer
