package portrait

import "fmt"

// names are of people whom a demonstration shows; the first Faces of them look different.
//
//nolint:gochecknoglobals // a table that nobody changes
var names = []string{
	"Grace Hopper", "Alan Turing", "Hedy Lamarr", "Edsger Dijkstra", "Katherine Johnson", "Mark Dean",
	"Barbara Liskov", "Donald Knuth", "Radia Perlman", "Tony Hoare", "Evelyn Boyd", "Clarence Ellis",
	"Frances Allen", "Ken Thompson", "Lynn Conway", "Leslie Lamport", "Gladys West", "Guion Bluford",
	"Margaret Hamilton", "Niklaus Wirth", "Shafi Goldwasser", "Robin Milner", "Annie Easley", "Jerry Lawson",
}

// PersonName returns a name that no other person of the first million has.
func PersonName(person int) string {
	name := names[person%len(names)]
	if again := person / len(names); again > 0 {
		return fmt.Sprintf("%s %d", name, again+1)
	}
	return name
}
