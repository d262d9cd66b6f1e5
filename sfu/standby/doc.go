// Package standby is what two media nodes tell each other so that one can go on with the connections of the other, with the
// same RTCPeerConnections and without a word to the clients.
//
// Owner is the side that has the connections: it tells each one to the node that stands by for it, and its numbers once a
// second. Table is the other side: it has the connections that this node stands by for, hears the checks of their clients,
// and gives a connection away once, when a client's room has a pin here. It promises that an owner uses no number that a
// standby may use (transport.Conn.Bound): that does not depend on clocks or on who is dead.
//
// It knows neither pins nor rooms; package sfu takes a connection from the Table under a confirmed pin only. DESIGN.md says
// what the browsers do. A reader begins with Owner.Add and Table.Serve.
package standby
