package ring

// Move is one room whose owner differs between two rings. From or To is empty
// when the ring on that side has no nodes.
type Move struct {
	Room RoomID
	From NodeID
	To   NodeID
}

// Moves returns the rooms that change owner from one ring to the other, in the
// order given; a room given twice is judged twice.
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
