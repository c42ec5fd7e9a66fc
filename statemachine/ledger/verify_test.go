package ledger

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pawl.dev/pawl/api/v1alpha1"
)

// A log of which one thing was changed does not verify, whatever it was.
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
		if err := Verify("db", c.status, pages); err != nil {
			t.Fatalf("before: %v", err)
		}
		what := rapid.SampledFrom([]string{"edit", "remove", "swap", "page", "summary", "log", "status"}).Draw(t, "fault")
		if !damage(t, what, &c.status, &pages) {
			return
		}
		if err := Verify("db", c.status, pages); err == nil {
			t.Fatalf("%s was not found", what)
		} else if err.Error() == "" {
			t.Fatalf("%s has no message", what)
		}
	})
}

// damage changes one thing; false if there is nothing to change.
func damage(t *rapid.T, what string, status *v1alpha1.RolloutProgressStatus, pages *[]v1alpha1.Page) bool {
	n := rapid.IntRange(0, len(*pages)-2).Draw(t, "page")
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
		if page.Rollout == nil {
			return changeField(reflect.ValueOf(&page.StatefulSetUID).Elem())
		}
		f := rapid.SampledFrom([]string{"Number", "Reason", "FromRevision", "ToRevision", "StartedBy", "Cause", "Steps"}).Draw(t, "field")
		return changeField(reflect.ValueOf(page.Rollout).Elem().FieldByName(f))
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
		return changeField(v.Field(f))
	}
	return true
}

// change gives one scalar field of a transition another value.
func change(t *rapid.T, v reflect.Value) bool {
	return changeField(v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "field")))
}

func changeField(f reflect.Value) bool {
	switch f.Kind() {
	case reflect.String:
		f.SetString(f.String() + "x")
	case reflect.Int64, reflect.Int32:
		f.SetInt(f.Int() + 1)
	case reflect.Pointer:
		if f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
			return true
		}
		if f.Elem().Kind() != reflect.Int32 {
			return changeField(f.Elem().Field(0))
		}
		f.Elem().SetInt(f.Elem().Int() + 1)
	default:
		return false
	}
	return true
}
