package statemachine

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// teller writes down what happens to a world as a script of the kind in testdata: after each action it says what Pawl
// sees differently now, and where Pawl looks the script decides, so that what is told is what the script does.
type teller struct {
	strings.Builder
	script *script
	pods   [maxOrdinal]body // as the script has them
	// The events of each decision, of the world and of the script: they are the same.
	looks, decided []string
}

// tell is the way from the first world as a script.
func (g *graph) tell(actions []action) string {
	w := g.first
	s := *g.setting
	s.diary = &diary{keeps: true}
	w.setting = &s
	var b strings.Builder
	fmt.Fprintf(&b, "# %d actions:", len(actions))
	for _, a := range actions {
		b.WriteString(" " + a.String() + ";")
	}
	t := tell(&w, actions)
	return b.String() + "\n" + t.String()
}

// tell takes the actions in the world and writes them down.
func tell(w *world, actions []action) *teller {
	t := &teller{script: newScript()}
	t.begin(w)
	for i, a := range actions {
		violated := len(w.diary.violations)
		t.happens(w, a, i+1 < len(actions) && actions[i+1].act == actWrite)
		for _, v := range w.diary.violations[violated:] {
			fmt.Fprintf(t, "# %s: %s\n", a, v)
		}
	}
	return t
}

func (t *teller) happens(w *world, a action, acts bool) {
	then := w.now
	looked := len(w.diary.log)
	if !w.do(a) {
		return
	}
	switch {
	case a.act == actLook && acts:
		t.run("decide")
	case a.act == actLook:
		t.run("decide crash")
	case a.act == actLoseLog:
		t.run("log " + recordsAre[a.n])
	default:
		if d := w.now.Sub(then); d > 0 {
			t.run("wait " + d.String())
		}
		t.sees(w)
	}
	if a.act == actLook {
		t.looks = append(t.looks, eventTexts(w.diary.log[looked:]))
	}
}

func eventTexts(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(describe(e) + "\n")
	}
	return b.String()
}

// run runs a command and writes it down with what it answers.
func (t *teller) run(command string) {
	name, args, err := datadriven.ParseLine(command)
	if err != nil {
		panic(err)
	}
	before := len(t.script.log)
	out, err := t.script.run(&datadriven.TestData{Cmd: name, CmdArgs: args})
	if err != nil {
		out = err.Error()
	}
	if out != "" {
		out += "\n"
	}
	if name == "decide" {
		t.decided = append(t.decided, eventTexts(t.script.log[before:]))
	}
	fmt.Fprintf(t, "%s\n----\n%s\n", command, out)
}

// begin brings the script to where the world begins.
func (t *teller) begin(w *world) {
	facts := []string{"deadline=" + modelDeadline.String()}
	if w.parallel {
		facts = append(facts, "parallel")
	}
	if w.minReady > 0 {
		facts = append(facts, "minready="+w.minReady.String())
	}
	if w.noRestore {
		facts = append(facts, "norestore")
	}
	if p := w.policy; p.CanaryPods > 0 || p.Bake > 0 {
		t.run(fmt.Sprintf("policy canary=%d bake=%s", p.CanaryPods, p.Bake))
	}
	if w.policy.Slots.Limit > 0 {
		t.run(fmt.Sprintf("policy slots=%d", w.policy.Slots.Limit))
	}
	t.run("set " + strings.Join(facts, " "))
	for i := range int32(len(t.script.o.Pods)) { // a script begins with three pods at A
		b := w.pods[w.start+i]
		t.pods[w.start+i] = b
		if b.kind != podAbsent && (b.kind != podReady || b.rev != "A") {
			t.pods[w.start+i] = body{kind: podReady}
		}
		switch {
		case b.kind == podAbsent:
			t.run(fmt.Sprintf("pod %d absent", i))
		case w.unprobed:
			t.run(fmt.Sprintf("pod %d noprobe", i))
		}
	}
	t.sees(w)
}

// sees tells what Pawl sees differently now.
func (t *teller) sees(w *world) {
	o := w.observe()
	t.seesSet(&o)
	pods := &w.pods
	if w.oldPods {
		pods = &w.seenPods
	}
	for i := range o.Replicas {
		t.seesPod(w, i, &pods[o.Start+i], &o.Pods[i])
	}
	t.seesOthers(&o.Policy)
	for _, g := range o.Policy.Gates {
		if !hasGate(t.script.o.Policy.Gates, g) {
			t.run(strings.TrimSuffix(fmt.Sprintf("gate %s %s bypass=%s", g.Name, g.Verdict, g.Bypass), " bypass="+string(BypassNever)))
		}
	}
}

func (t *teller) seesOthers(p *Policy) {
	was := &t.script.o.Policy
	if len(p.Budgets) > 0 && (len(was.Budgets) == 0 || was.Budgets[0].Allowed != p.Budgets[0].Allowed) {
		b := p.Budgets[0]
		t.run(fmt.Sprintf("budget %s allowed=%d healthy=%d desired=%d expected=%d", b.Name, b.Allowed, b.Healthy, b.Desired, b.Expected))
	}
	if len(p.Slots.Holders) != len(was.Slots.Holders) {
		t.run("policy holders=(" + cmp.Or(strings.Join(p.Slots.Holders, ","), "none") + ")")
	}
}

func hasGate(gates []Gate, g Gate) bool {
	for _, have := range gates {
		if have.Name == g.Name && have.Verdict == g.Verdict {
			return true
		}
	}
	return false
}

func (t *teller) seesSet(o *Observation) {
	s := &t.script.o
	var facts []string
	differs := func(is bool, format string, args ...any) {
		if is {
			facts = append(facts, fmt.Sprintf(format, args...))
		}
	}
	newSet := o.Created.After(s.Created) && len(t.looks) == 0 && o.ObservedGeneration == 0
	differs(newSet, "created")
	differs(len(t.looks) > 0 && o.UID != "" && o.UID != t.uid(), "uid=%s", o.UID)
	differs(o.Replicas != s.Replicas, "replicas=%d", o.Replicas)
	differs(o.Start != s.Start, "start=%d", o.Start)
	differs(o.Partition != s.Partition, "p=%s", partitionText(o.Partition))
	differs(o.TemplateDigest != s.TemplateDigest, "digest=%s", o.TemplateDigest)
	differs(o.CurrentRevision != s.CurrentRevision, "cur=%s", o.CurrentRevision)
	differs(o.UpdateRevision != s.UpdateRevision, "upd=%s", o.UpdateRevision)
	differs(o.UpdatedReplicas != s.UpdatedReplicas || o.Replicas != s.Replicas, "updated=%d", o.UpdatedReplicas)
	touches := o.Replicas != s.Replicas || o.Start != s.Start || o.Partition != s.Partition
	differs(o.Generation != s.Generation || touches, "gen=%d", o.Generation)
	differs(o.ObservedGeneration != s.ObservedGeneration || touches, "observed=%d", o.ObservedGeneration)
	differs(o.Mode != s.Mode, "mode=%s", o.Mode)
	differs(o.Paused != s.Paused, "paused=%t", o.Paused)
	differs(o.Force != s.Force, "force=(%s,%d)", o.Force.Revision, o.Force.Partition)
	differs(o.Approved != s.Approved, "approved=%s", o.Approved)
	differs(len(o.Condemned) != len(s.Condemned), "condemned=%d", len(o.Condemned))
	for i := range t.pods { // what a script scales down is gone
		if n := int32(i) - o.Start; n >= o.Replicas {
			t.pods[i] = body{}
		}
	}
	if len(facts) > 0 {
		t.run("set " + strings.Join(facts, " "))
	}
}

// uid is that of the StatefulSet as the world numbers it.
func (t *teller) uid() string {
	if uid := t.script.o.UID; uid != "u1" {
		return uid
	}
	return setUID(1)
}

func (t *teller) seesPod(w *world, i int32, is *body, p *Pod) {
	was := &t.pods[w.start+i]
	told := t.script.o.Pods[i].Told
	say := func(format string, args ...any) { t.run(fmt.Sprintf("pod %d "+format, append([]any{i}, args...)...)) }
	switch {
	case is.kind == podAbsent:
		if was.kind != podAbsent {
			say("absent")
		}
		if p.Told.Reason != "" && p.Told != told {
			say("refused")
		}
	case is.uid != was.uid:
		say("%s %s", is.rev, is.word())
		if w.unprobed {
			say("noprobe")
		}
	case is.kind != was.kind:
		say("%s", is.word())
	}
	if is.kind != podAbsent {
		if is.silent != (was.silent && is.uid == was.uid) {
			say("%s", map[bool]string{true: "silent", false: "back"}[is.silent])
			if is.kind == podReady && !is.silent {
				say("ready")
			}
		}
		if is.terminating != (was.terminating && is.uid == was.uid) {
			say("terminating")
		}
		if lost, had := len(p.Claims) > 0, claimIn(&t.script.o.Pods[i], claimLost) != ""; lost != had {
			say("%s", map[bool]string{true: "lost", false: "bound"}[lost])
		}
	}
	*was = *is
}

func (b *body) word() string {
	if b.kind == podReady && b.restarted {
		return "restarted"
	}
	return [...]string{"absent", "starting", "pull", "ready", "unready", "crash", "failed"}[b.kind]
}
