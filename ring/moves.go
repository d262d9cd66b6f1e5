package ring

// Move is a room's change of owner; From or To may be empty.
type Move struct {
	Room RoomID
	From NodeID
	To   NodeID
}

// Moves returns the rooms whose owners differ.
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
