package statemachine

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Ordinals is a set of pod ordinals in its canonical text form, for example "2" or "0-2,5". The empty string is the
// empty set. Being text it can be compared, stored and read.
type Ordinals string

// maxOrdinals bounds one range of a set that is read from outside.
const maxOrdinals = 100_000

// OrdinalsOf returns the set of these ordinals.
func OrdinalsOf(ordinals ...int32) Ordinals {
	sorted := slices.Compact(slices.Sorted(slices.Values(ordinals)))
	var b strings.Builder
	for i := 0; i < len(sorted); {
		last := i
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(sorted[i])))
		if last > i {
			b.WriteString("-" + strconv.Itoa(int(sorted[last])))
		}
		i = last + 1
	}
	return Ordinals(b.String())
}

// ParseOrdinals returns the set that text stands for, or an error that quotes it if it is not in canonical form.
func ParseOrdinals(text string) (Ordinals, error) {
	if text == "" {
		return "", nil
	}
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		l, errLow := strconv.ParseInt(low, 10, 32)
		h, errHigh := strconv.ParseInt(high, 10, 32)
		if errLow != nil || errHigh != nil || l < 0 || h < l || h-l >= maxOrdinals {
			return "", fmt.Errorf("ordinals %q: %q is not an ordinal or a range like 0-2 of at most %d", text, part, maxOrdinals)
		}
	}
	set := Ordinals(text)
	if canonical := OrdinalsOf(slices.Collect(set.All())...); canonical != set {
		return "", fmt.Errorf("ordinals %q: want %q", text, canonical)
	}
	return set, nil
}

// ranges yields the bounds of each run of ordinals, both inclusive.
func (o Ordinals) ranges() iter.Seq2[int32, int32] {
	return func(yield func(int32, int32) bool) {
		if o == "" {
			return
		}
		for part := range strings.SplitSeq(string(o), ",") {
			low, high, isRange := strings.Cut(part, "-")
			if !isRange {
				high = low
			}
			l, _ := strconv.ParseInt(low, 10, 32)
			h, _ := strconv.ParseInt(high, 10, 32)
			if !yield(int32(l), int32(h)) {
				return
			}
		}
	}
}

// All yields the ordinals in ascending order.
func (o Ordinals) All() iter.Seq[int32] {
	return func(yield func(int32) bool) {
		for low, high := range o.ranges() {
			for n := low; ; n++ {
				if !yield(n) {
					return
				}
				if n == high {
					break
				}
			}
		}
	}
}

// Has reports whether the set contains this ordinal.
func (o Ordinals) Has(ordinal int32) bool {
	for low, high := range o.ranges() {
		if low <= ordinal && ordinal <= high {
			return true
		}
	}
	return false
}

// Len is the number of ordinals in the set.
func (o Ordinals) Len() int {
	n := 0
	for low, high := range o.ranges() {
		n += int(high-low) + 1
	}
	return n
}

// Union returns the ordinals of both sets.
func (o Ordinals) Union(other Ordinals) Ordinals {
	return OrdinalsOf(slices.AppendSeq(slices.Collect(o.All()), other.All())...)
}

// Without returns the ordinals of o that are not in other.
func (o Ordinals) Without(other Ordinals) Ordinals {
	return o.keep(func(n int32) bool { return !other.Has(n) })
}

func (o Ordinals) keep(f func(int32) bool) Ordinals {
	var kept []int32
	for n := range o.All() {
		if f(n) {
			kept = append(kept, n)
		}
	}
	return OrdinalsOf(kept...)
}
