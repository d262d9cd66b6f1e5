// Package fault declares the errors that a client hears. A package of signaling declares each of its faults once, where the
// fault belongs, with the wire's code, the error's text for the log, and what the client is told: a sentence that says what
// was wrong, and advice that says what to do. Package reply turns any error into the answer that reaches a client.
//
// A fault is an ordinary sentinel: it is wrapped with %w and found with errors.Is.
package fault

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Fault is an error that a client hears. It is constant after its declaration.
type Fault struct {
	code   wire.Code
	text   string
	advice string
	// The sentence for the client, without the advice. If whole is set, the text of the whole error takes its place.
	sentence string
	whole    bool
}

// New declares a fault of which the client hears the text, as a sentence, and the advice. What a caller adds when it wraps
// the fault stays in the log. The advice is one or more sentences, or empty.
func New(code wire.Code, text, advice string) *Fault {
	return &Fault{code: code, text: text, advice: advice, sentence: sentenceOf(text)}
}

// Detailed declares a fault of which the client also hears what callers added when they wrapped it.
func Detailed(code wire.Code, text, advice string) *Fault {
	return &Fault{code: code, text: text, advice: advice, whole: true}
}

// Denied declares a fault of a token that lacks a grant. The text says which grant.
func Denied(text string) *Fault {
	return Detailed(wire.CodeNotAllowed, text, "Ask the application for another token.")
}

// Coded declares a fault of which the client hears only the sentence of its code. The text stays in the log.
func Coded(code wire.Code, text string) *Fault {
	return &Fault{code: code, text: text, sentence: wire.MeaningOf(code).Sentence}
}

// Sayf returns a fault of one occasion. The client hears its text word for word.
func Sayf(code wire.Code, format string, args ...any) *Fault {
	text := fmt.Sprintf(format, args...)
	return &Fault{code: code, text: text, sentence: text}
}

// Error returns the text for the log.
func (f *Fault) Error() string { return f.text }

// Code returns the wire's code. The status and whether a client may retry follow from it; see wire.MeaningOf.
func (f *Fault) Code() wire.Code { return f.code }

// Told returns what the client hears if err is the whole error in which the fault was found.
func (f *Fault) Told(err error) string {
	sentence := f.sentence
	if f.whole {
		sentence = sentenceOf(err.Error())
	}
	if f.advice == "" {
		return sentence
	}
	return sentence + " " + f.advice
}

// Over returns an error that wraps the fault and its cause, like errors.Join, but of which the client hears the fault even if
// the cause is a fault as well.
func (f *Fault) Over(cause error) error { return &overError{f, cause} }

type overError struct {
	fault *Fault
	cause error
}

func (e *overError) Error() string   { return e.fault.Error() + "\n" + e.cause.Error() }
func (e *overError) Unwrap() []error { return []error{e.fault, e.cause} }

// Find returns the fault that a client hears of err, or nil. If err names several faults, the last one counts: an error's text
// goes from the action to the cause, and the cause knows most. An error that knows its fault has a method Fault() *Fault;
// others returns the fault of an error of a package that knows no client, or nil.
func Find(err error, others func(error) *Fault) *Fault {
	var found *Fault
	switch node := err.(type) { //nolint:errorlint // every error of the tree is visited
	case *Fault:
		return node
	case *overError:
		return node.fault
	case interface{ Fault() *Fault }:
		found = node.Fault()
	default:
		found = others(err)
	}
	for _, cause := range causesOf(err) {
		if deeper := Find(cause, others); deeper != nil {
			found = deeper
		}
	}
	return found
}

func causesOf(err error) []error {
	switch node := err.(type) { //nolint:errorlint // only this error's own causes
	case interface{ Unwrap() error }:
		if cause := node.Unwrap(); cause != nil {
			return []error{cause}
		}
	case interface{ Unwrap() []error }:
		return node.Unwrap()
	}
	return nil
}

// sentenceOf makes a sentence of an error's text.
func sentenceOf(text string) string {
	if text == "" {
		return ""
	}
	if first := text[0]; first >= 'a' && first <= 'z' {
		text = string(first-'a'+'A') + text[1:]
	}
	return text + "."
}
