package ledger

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// A log of which one thing was changed does not verify, whatever it was, and the fault is located: in the page that was
// changed, or in status.
func TestEveryFaultIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cluster{records: map[string]v1alpha1.Page{}}
		for range 5 {
			live(t, &c)
		}
		pages := c.pages()
		if len(pages) < 2 {
			return
		}
		faults := []string{"edit", "remove", "swap", "page", "summary", "log", "status"}
		if rapid.Bool().Draw(t, "records alone") { // the StatefulSet was deleted
			c.status, faults = v1alpha1.RolloutProgressStatus{}, faults[:5]
		}
		if err := Verify("db", c.status, pages); err != nil {
			t.Fatalf("before: %v", err)
		}
		what := rapid.SampledFrom(faults).Draw(t, "fault")
		n := rapid.IntRange(0, len(pages)-2).Draw(t, "page")
		from, to := first(pages[n]), last(pages[n])
		switch what {
		case "summary":
			n = rapid.IntRange(0, len(pages)-1).Draw(t, "summary of")
			from, to = first(pages[n]), last(pages[n])
		case "log", "status":
			from, to = c.status.Sequence-int64(len(c.status.Transitions))+1, c.status.Sequence
		}
		if !damage(t, what, &c.status, &pages, n) {
			return
		}
		switch what { // a number that was changed is what the fault is told by
		case "edit":
			to = max(to, last(pages[n]))
		case "status":
			to = max(to, c.status.Sequence)
		}
		err := Verify("db", c.status, pages)
		if err == nil {
			t.Fatalf("%s was not found", what)
		}
		if at := located(err); at < from || at > to {
			t.Fatalf("%s of transitions %d to %d was found at %d: %v", what, from, to, at, err)
		}
	})
}

// located is the transition at which an error says that the fault is; 0 if it does not.
func located(err error) int64 {
	if damaged, is := errors.AsType[*DamagedError](err); is {
		return damaged.Sequence
	}
	if missing, is := errors.AsType[*MissingError](err); is {
		return missing.Sequence
	}
	return 0
}

// damage changes one thing, in the n-th page or in status; false if there is nothing to change.
func damage(t *rapid.T, what string, status *v1alpha1.RolloutProgressStatus, pages *[]v1alpha1.Page, n int) bool {
	page := &(*pages)[n]
	i := rapid.IntRange(0, len(page.Transitions)-1).Draw(t, "transition")
	switch what {
	case "edit":
		return change(t, reflect.ValueOf(&page.Transitions[i]).Elem())
	case "remove":
		if page.Transitions = slices.Delete(page.Transitions, i, i+1); len(page.Transitions) == 0 && n == 0 {
			return false // the oldest page may be gone
		}
	case "swap":
		j := rapid.IntRange(0, len(page.Transitions)-1).Draw(t, "with")
		page.Transitions[i], page.Transitions[j] = page.Transitions[j], page.Transitions[i]
		return i != j
	case "page":
		if n == 0 {
			return false
		}
		*pages = slices.Delete(*pages, n, n+1)
	case "summary":
		return summary(t, *pages, n, max(status.Sequence, last((*pages)[len(*pages)-1])))
	case "log":
		if len(status.Transitions) == 0 {
			return false
		}
		return change(t, reflect.ValueOf(&status.Transitions[rapid.IntRange(0, len(status.Transitions)-1).Draw(t, "line")]).Elem())
	case "status":
		v := reflect.ValueOf(status).Elem()
		f := rapid.IntRange(0, v.NumField()-1).Draw(t, "field")
		if name := v.Type().Field(f).Name; name == "Conditions" || name == "ObservedGeneration" || name == "Transitions" {
			return false
		}
		return changeField(t, v.Field(f))
	}
	return true
}

// summary changes what the n-th page says about itself. How a rollout ended that was open at the end of its page only what
// comes next tells; nobody can, if that is nothing, or a log that was begun anew.
func summary(t *rapid.T, pages []v1alpha1.Page, n int, end int64) bool {
	page := &pages[n]
	if page.Rollout == nil {
		return changeField(t, reflect.ValueOf(&page.StatefulSetUID).Elem())
	}
	fields := []string{"Number", "Reason", "FromRevision", "ToRevision", "StartedBy", "Cause", "Steps"}
	ends := Newest(*page).Type
	open := ends != string(statemachine.RolloutCompleted) && ends != string(statemachine.Abandoned)
	lost := last(*page) == end || n+1 < len(pages) && pages[n+1].Transitions[0].Type == "Adopted"
	if !open || !lost {
		fields = append(fields, "Outcome", "FinishedAt", "BlockedSeconds", "DurationSeconds")
	}
	if f := rapid.SampledFrom(fields).Draw(t, "field"); f != "DurationSeconds" {
		return changeField(t, reflect.ValueOf(page.Rollout).Elem().FieldByName(f))
	}
	return changeField(t, reflect.ValueOf(&page.DurationSeconds).Elem())
}

// change gives one scalar field of a transition another value.
func change(t *rapid.T, v reflect.Value) bool {
	return changeField(t, v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "field")))
}

func changeField(t *rapid.T, f reflect.Value) bool {
	switch f.Kind() {
	case reflect.String:
		f.SetString(mistyped(t, f.String()))
	case reflect.Int64, reflect.Int32:
		f.SetInt(f.Int() + 1)
	case reflect.Pointer:
		if f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
			return true
		}
		if f.Elem().Kind() != reflect.Int32 {
			return changeField(t, f.Elem().Field(0))
		}
		f.Elem().SetInt(f.Elem().Int() + 1)
	case reflect.Struct:
		if at, is := reflect.TypeAssert[*metav1.MicroTime](f.Addr()); is {
			at.Time = at.Add(time.Second)
			return true
		}
		return false
	default:
		return false
	}
	return true
}

// mistyped is a text of which one character is another, or that has one where there was none.
func mistyped(t *rapid.T, text string) string {
	characters := []rune(text)
	i := rapid.IntRange(0, len(characters)).Draw(t, "character")
	if i == len(characters) {
		return text + "x"
	}
	if characters[i]++; characters[i] == '{' {
		characters[i] = 'a'
	}
	return string(characters)
}
