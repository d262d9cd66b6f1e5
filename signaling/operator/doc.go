// Package operator keeps what a signaling node shows to operators of the whole cluster and could not ask for each time: each media node's
// load of the last 15 minutes, and the list of all rooms, which it searches and sorts here so that a browser gets a page of it.
//
// It promises that its memory is bounded by the nodes and rooms there are, and that media nodes are asked no more often when more people
// look. It decides nothing. Begin with Rooms.
package operator
