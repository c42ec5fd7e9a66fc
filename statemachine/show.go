package statemachine

// show sets what people see.
func (s State) show(e Event, before State) State {
	if e.Message != "" {
		s.Message = e.Message
	}
	switch e.Type {
	case Adopted, RolloutStarted, Settled, RolloutCompleted, Abandoned, Held, BlockedEvent:
		s.Reason, s.Pod = e.Reason, e.Pod
	case StepStarted:
		s.Reason, s.Pod = ReasonStarting, e.Pod
		if e.Reason != "" {
			s.Reason = e.Reason
		}
	case StepCompleted, StepAborted, Unblocked:
		s.Reason, s.Pod = s.Rollout.Reason, ""
	case StepResumed:
		s.Reason, s.Pod = ReasonStarting, e.Pod
	case Released:
		switch {
		case e.Reason == ReasonFirstReady:
		case s.Name == Done:
			s.Reason, s.Pod = e.Reason, ""
		default:
			s.Reason, s.Pod = s.Rollout.Reason, ""
			if s.Step.Open() {
				s.Reason, s.Pod = ReasonStarting, e.Pod
			}
		}
	default:
	}
	if s.Name != before.Name || s.Reason != before.Reason || e.Anchor() {
		s.Since = e.Time
	} else {
		s.Since = before.Since
	}
	return s
}
