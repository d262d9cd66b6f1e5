// Package reception is what a media node tells a publisher by RTCP about the streams that arrive from it: which packets to
// send again (NACK, RFC 4585), what was lost and how late it came (receiver reports, RFC 3550), and when each packet of the
// transport arrived (draft-holmer-rmcat-transport-wide-cc-extensions-01).
//
// It is arithmetic: no goroutine, no lock, no clock. A Receiver serves one connection; its caller serialises the calls and
// passes the time. What it remembers is bounded whatever numbers arrive, and a packet costs no allocation.
//
// It knows no keyframe request, no bandwidth and no rewriting. What it writes may be sent as it is: reduced-size RTCP
// (RFC 5506), as all browsers accept it.
package reception
