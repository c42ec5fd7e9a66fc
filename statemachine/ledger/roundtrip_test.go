package ledger

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

func TestTransitionAndEventSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEvent(t, statemachine.State{})
		stored := transitionOf(e)
		stored.Sequence = 7

		back := transitionOf(eventOf(stored))
		back.Sequence = 7
		if what := difference(back, stored); what != "" {
			t.Fatalf("transition → event → transition: %s", what)
		}
		if again := eventOf(back); !reflect.DeepEqual(again, eventOf(stored)) {
			t.Fatalf("event → transition → event: %+v", again)
		}
	})
}

func TestTheAPIServerChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := transitionOf(drawEvent(t, statemachine.State{}))
		text, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		var back v1alpha1.Transition
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(eventOf(back), eventOf(stored)) {
			t.Fatalf("read back %+v", eventOf(back))
		}
	})
}

// Every field of one must reach the other: a field that is added to Event and forgotten here fails.
func TestNoFieldIsForgotten(t *testing.T) {
	g := NewWithT(t)
	full := filled(reflect.TypeFor[statemachine.Event]()).Interface().(statemachine.Event)
	full.Time = begin
	g.Expect(eventOf(transitionOf(full))).To(Equal(full))

	fullTransition := transitionOf(full)
	fullTransition.Sequence = 1
	v := reflect.ValueOf(fullTransition)
	for i := range v.NumField() {
		g.Expect(v.Field(i).IsZero()).To(BeFalse(), "%s is not set from any field of Event", v.Type().Field(i).Name)
	}
}

func TestTimesAreStoredInMicroseconds(t *testing.T) {
	g := NewWithT(t)
	e := statemachine.Event{Time: time.Date(2026, 12, 1, 4, 2, 11, 665687999, time.FixedZone("", 3600))}
	g.Expect(eventOf(transitionOf(e)).Time).To(Equal(begin), "to the last bit, so that == holds")
	g.Expect(eventOf(transitionOf(statemachine.Event{})).Time).To(Equal(time.Time{}))
}

func TestTextIsFitToBeStored(t *testing.T) {
	g := NewWithT(t)
	g.Expect(clean("back-off\n\tpulling\x00\x1b[31m\x7f\u0085", 64)).To(Equal("back-off  pulling  [31m  "))
	g.Expect(clean("a\xff\xfeb", 64)).To(Equal("a\ufffdb"))
	g.Expect(clean("ééééé", 4)).To(Equal("ééé…"))
	g.Expect(clean("ééééé", 5)).To(Equal("ééééé"))
	rapid.Check(t, func(t *rapid.T) {
		once := clean(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")), 20)
		if clean(once, 20) != once || utf8.RuneCountInString(once) > 20 {
			t.Fatalf("%q is not clean", once)
		}
	})
}

// filled returns a value in which nothing is zero.
func filled(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(filled(of.Field(i).Type))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(filled(of.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(of.Elem())))
	case reflect.String:
		v.SetString("2")
	default:
		v.SetInt(2)
	}
	return v
}
