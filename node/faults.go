package node

import "strings"

// FaultsError is every fault of a configuration.
type FaultsError struct{ faults []error }

// Error lists the faults, one a line. One alone is just said.
func (e *FaultsError) Error() string {
	if len(e.faults) == 1 {
		return e.faults[0].Error()
	}
	var text strings.Builder
	text.WriteString("the configuration has faults:")
	for _, fault := range e.faults {
		text.WriteString("\n  - " + fault.Error())
	}
	return text.String()
}

// Faults makes one error of all faults, or nil. Joined errors are taken apart, so that each gets a line.
func Faults(errs ...error) error {
	var flat []error
	for _, err := range errs {
		flat = append(flat, flatten(err)...)
	}
	if len(flat) == 0 {
		return nil
	}
	return &FaultsError{faults: flat}
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var flat []error
	for _, one := range joined.Unwrap() {
		flat = append(flat, flatten(one)...)
	}
	return flat
}
