package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"pawl.dev/pawl/api/v1alpha1"
)

// Chain is the head of the chain after a transition, given the head before it: the SHA-256 of the head before it (64
// hex digits, nothing for the first transition of all), a line feed, and the canonical bytes of the transition.
func Chain(previous string, t v1alpha1.Transition) string {
	return chain(previous, Canonical(t))
}

func chain(previous string, canonical []byte) string {
	sum := sha256.Sum256(slices.Concat([]byte(previous), []byte{'\n'}, canonical))
	return hex.EncodeToString(sum[:])
}

// Canonical is the one way to write a transition: JSON as RFC 8785 (JCS) has it, which is what `jq -cS` prints.
// Fields are sorted by name and unset ones left out.
func Canonical(t v1alpha1.Transition) []byte { return canonical(t) }

// canonical writes any of the API types. It goes by way of their JSON form, so that no field can be forgotten.
func canonical(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // the types of the API hold nothing that JSON cannot say
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		panic(fmt.Sprintf("decode %T: %v", v, err)) // it was encoded above
	}
	return appendCanonical(nil, tree)
}

func appendCanonical(b []byte, tree any) []byte {
	switch v := tree.(type) {
	case map[string]any:
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) { // all keys are ASCII: byte order is the order of RFC 8785
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			b = appendCanonical(b, v[key])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, item)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	case json.Number:
		return append(b, v...) // integers of at most 2^53-1 only: they have one form
	case bool:
		return strconv.AppendBool(b, v)
	default:
		return append(b, "null"...)
	}
}

// appendString escapes what JSON demands and nothing else. encoding/json escapes U+2028 and U+2029 as well, RFC 8785
// and jq do not.
func appendString(b []byte, s string) []byte {
	const short = "\b\t\n\f\r"
	b = append(b, '"')
	for _, r := range s {
		switch i := bytes.IndexRune([]byte(short), r); {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case i >= 0:
			b = append(b, '\\', "btnfr"[i])
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
