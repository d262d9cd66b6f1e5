package ring

// Move is a room that gets another owner. From or To is empty if one of the rings has no nodes.
type Move struct {
	Room RoomID
	From NodeID
	To   NodeID
}

// Moves returns the rooms whose owners differ between two rings, in the order given.
func Moves(before, after *Ring, rooms []RoomID) []Move {
	var moves []Move
	for _, room := range rooms {
		from, _ := before.Owner(room)
		to, _ := after.Owner(room)
		if from != to {
			moves = append(moves, Move{Room: room, From: from, To: to})
		}
	}
	return moves
}
