// Package cascade carries layers of a room between media nodes.
//
// A Trunk is the media connection of two nodes, and Trunks opens and renews those of a node. A Link joins the two halves of one room over it:
// each side tells the other which layers its publishers send, and gets those that its viewers want. It promises that a layer crosses once, and only while it is wanted; that what
// crosses is what the publisher sent; and that no number is used twice under one SSRC, whatever a publisher's numbers do.
//
// It knows forward's rooms and transport's connections, and neither people, pins nor who decides that a room spreads. DESIGN.md has the
// reasons. Begin with Link.
package cascade
