package ledger

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of the API, in characters.
const (
	maxToken       = 64
	maxName        = 253
	maxDigest      = 128
	maxMessage     = 512
	maxCause       = 256
	maxGateName    = 63
	maxGateMessage = 128
)

// clean makes text fit to be stored and to be hashed: what comes from a kubelet or a user may hold anything. Control
// characters, DEL among them, become spaces, and so do those that turn the direction of text: encoders do not agree on
// how to escape them, and a terminal obeys them.
// Clean text stays as it is.
func clean(s string, limit int) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, s)
	return cut(s, limit)
}

// cut shortens text to a number of characters, as the API counts them, and shows that it did.
func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
