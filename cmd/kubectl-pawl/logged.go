package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"pawl.dev/pawl/api/v1alpha1"
	"pawl.dev/pawl/statemachine"
)

// loggedHead is the head of a chain as the manager logged it.
type loggedHead struct {
	Sequence  int64  `json:"sequence"`
	Digest    string `json:"digest"`
	Namespace string `json:"namespace"`
	Name      string `json:"statefulset"`
	Type      string `json:"type"`
	Reason    string `json:"reason"`
	TS        any    `json:"ts"` // text, but log pipelines rewrite it

	time time.Time // zero if it is not known
}

func (h loggedHead) String() string {
	if h.time.IsZero() {
		return fmt.Sprintf("transition %d", h.Sequence)
	}
	return fmt.Sprintf("transition %d (%s)", h.Sequence, h.time.UTC().Format(stamp))
}

// anew reports whether a log began anew with it: its numbers may have been used before.
func (h loggedHead) anew() bool {
	return h.Type == string(statemachine.Adopted) && (h.Sequence == 1 || h.Reason == string(statemachine.ReasonLogRestarted))
}

// loggedLog is what the manager logged of one StatefulSet.
type loggedLog struct {
	heads []loggedHead // that its history has to contain
	lost  []verdict    // what was logged, and is no longer part of the history by what was logged later
}

// lostBefore says which transitions were lost when the log began anew.
func lostBefore(h loggedHead, first, newest int64) verdict {
	return verdict{
		Namespace: h.Namespace, StatefulSet: h.Name, Verdict: lost, First: first, Newest: newest,
		Message: fmt.Sprintf("transitions %d to %d: the RolloutProgress was deleted, or lost, before they were in a record; the log began anew with %s", first, newest, h),
	}
}

// add adds the next head. A log that began anew uses numbers again of what was lost with a RolloutProgress.
func (l *loggedLog) add(h loggedHead) {
	if h.anew() {
		var lost []loggedHead
		l.heads = slices.DeleteFunc(l.heads, func(was loggedHead) bool {
			again := was.Sequence >= h.Sequence
			if again {
				lost = append(lost, was)
			}
			return again
		})
		if len(lost) > 0 {
			l.lost = append(l.lost, lostBefore(h, slices.MinFunc(lost, bySequence).Sequence, slices.MaxFunc(lost, bySequence).Sequence))
		}
	}
	l.heads = append(l.heads, h)
}

func bySequence(a, b loggedHead) int { return cmp.Compare(a.Sequence, b.Sequence) }

// in compares the heads with those of a history, and returns how many there were to compare: those of records that are gone
// by their age cannot be.
func (l *loggedLog) in(heads map[int64]string, pages []v1alpha1.Page) (checked int, err error) {
	newest := newestOf(pages)
	for _, h := range slices.SortedStableFunc(slices.Values(l.heads), bySequence) {
		switch digest, there := heads[h.Sequence]; {
		case digest == h.Digest:
			checked++
		case there:
			return checked, fmt.Errorf("rewritten: at transition %d the manager logged the head %s, and the history has %s%s", h.Sequence, h.Digest, digest, restarted(pages, h))
		case h.Sequence > newest.Sequence:
			return checked, fmt.Errorf("cut off: the manager logged %s, and the history ends at %d (%s)", h, newest.Sequence, newest.Time.UTC().Format(stamp))
		}
	}
	return checked, nil
}

// restarted says where a history began anew, if that explains why it is another one and the line that tells of it is not
// in the log.
func restarted(pages []v1alpha1.Page, h loggedHead) string {
	said := ""
	for _, page := range pages {
		for _, t := range page.Transitions {
			if t.Sequence <= h.Sequence && t.Reason == string(statemachine.ReasonLogRestarted) && (h.time.IsZero() || h.time.Before(t.Time.Time)) {
				said = fmt.Sprintf(". The history says that it began anew with transition %d (%s), after the RolloutProgress was deleted, or lost; the line of that is not in the log",
					t.Sequence, t.Time.UTC().Format(stamp))
			}
		}
	}
	return said
}

// firstDifference is the first transition that is not the one that the manager logged: a page has one digest for all of its
// transitions, and cannot tell.
func (l *loggedLog) firstDifference(heads map[int64]string) string {
	for _, h := range slices.SortedStableFunc(slices.Values(l.heads), bySequence) {
		if digest, there := heads[h.Sequence]; there && digest != h.Digest {
			return fmt.Sprintf(". By the manager's log the first that differs is transition %d", h.Sequence)
		}
	}
	return ""
}

// longestLine of a log that is read.
const longestLine = 1 << 20

// logged reads the manager's log.
func (v *verifyCommand) logged(of scope) (map[types.NamespacedName]*loggedLog, error) {
	in := io.NopCloser(v.In)
	if v.log != "-" {
		f, err := os.Open(v.log)
		if err != nil {
			return nil, fmt.Errorf("--log: %w", err)
		}
		in = f
	}
	defer func() { _ = in.Close() }()
	heads, err := readHeads(in)
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("a line is longer than %d bytes", longestLine)
	}
	if err != nil {
		return nil, fmt.Errorf("--log=%s: %w", v.log, err)
	}
	if len(heads) == 0 {
		return nil, fmt.Errorf("--log=%s: no line of it is one in which Pawl says that it recorded a transition; it has to be the manager's log with --log-format json", v.log)
	}
	logs := map[types.NamespacedName]*loggedLog{}
	for _, h := range heads {
		key := types.NamespacedName{Namespace: h.Namespace, Name: h.Name}
		if !of.has(key) {
			continue
		}
		if logs[key] == nil {
			logs[key] = &loggedLog{}
		}
		logs[key].add(h)
	}
	return logs, nil
}

// readHeads reads each head once, as pipelines deliver some lines twice, and sorts them by time, as they do not keep the
// order; a log without times is in order.
func readHeads(in io.Reader) ([]loggedHead, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	var heads []loggedHead
	seen, timed := map[loggedHead]bool{}, true
	for lines.Scan() {
		text := lines.Text()
		at := strings.IndexByte(text, '{') // log pipelines put a time before it
		var h loggedHead
		if at < 0 || json.Unmarshal([]byte(text[at:]), &h) != nil || h.Sequence == 0 || len(h.Digest) != 64 {
			continue
		}
		ts, _ := h.TS.(string)
		h.TS = nil
		if seen[h] {
			continue
		}
		seen[h] = true
		h.time, _ = time.Parse(time.RFC3339, ts)
		timed = timed && !h.time.IsZero()
		heads = append(heads, h)
	}
	if timed {
		slices.SortStableFunc(heads, func(a, b loggedHead) int { return a.time.Compare(b.time) })
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read a line: %w", err)
	}
	return heads, nil
}
