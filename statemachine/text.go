package statemachine

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// podsOf names the pods of a set: "db-2", or "db-0-2" for several.
func (v *view) podsOf(o Ordinals) string {
	if o.Len() <= 1 {
		return v.o.Name + "-" + string(o)
	}
	return fmt.Sprintf("%s-{%s}", v.o.Name, o)
}

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

// by names a person; nothing for one who is not known.
func by(person string) string {
	if person == "" {
		return ""
	}
	return " by " + person
}

// partition is a partition as people read it.
func (v *view) partition(p int32) string {
	if p == Parked {
		return "parked"
	}
	return fmt.Sprint(p)
}

// clock is an absolute time, with the date where it is not today's.
func (v *view) clock(t time.Time) string {
	if t.Format(time.DateOnly) != v.o.Now.Format(time.DateOnly) {
		return t.UTC().Format("2006-01-02T15:04:05Z")
	}
	return t.UTC().Format("15:04:05Z")
}

// fit joins what is wrong, Kubernetes' own words and what to do to at most maxMessage characters. The words are cut
// first; what to do is never cut as long as anything else is left.
func fit(what, detail, next string) string {
	detail = strings.Join(strings.Fields(detail), " ")
	room := maxMessage - length(what) - length(next) - len(": .")
	switch {
	case detail != "" && room >= 12:
		detail = strings.TrimRight(cut(detail, room), ".")
		what += ": " + detail + "."
	case next != "" && !strings.ContainsRune(".:, ", rune(what[len(what)-1])):
		what += "."
	}
	if over := length(what) + length(next) - maxMessage; over > 0 {
		what = cut(what, max(length(what)-over, 1))
	}
	return cut(what+next, maxMessage)
}

func length(s string) int { return utf8.RuneCountInString(s) }

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if length(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:n-1]) + "…"
}
