package e2e

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	pawlv1alpha1 "pawl.dev/pawl/api/v1alpha1"
)

// probe is a readiness probe; the played kubelet only asks whether there is one.
func probe() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}}
}

type status = pawlv1alpha1.RolloutProgressStatus

const (
	parked       = 2147483647
	pullReasons  = "ErrImagePull ImagePullBackOff"
	crashReasons = "CrashLoopBackOff RestartLoop"
	tick         = 20 * time.Millisecond // how often to look for what may soon be over
)

// podName is the name of a pod of the StatefulSet.
func podName(i int) string { return fmt.Sprintf("%s-%d", name, i) }

// messageSays: the message for people has this text.
func messageSays(text string) is {
	return func(st status) string {
		if strings.Contains(st.Message, text) {
			return ""
		}
		return fmt.Sprintf("%s %s says %q; want %q in it", st.State, st.Reason, st.Message, text)
	}
}

// begun: the rollout with this number has started.
func begun(number int64) is {
	return func(st status) string {
		if st.Rollout == nil || st.Rollout.Number != number {
			return fmt.Sprintf("rollout %d has not started: %s %s", number, st.State, st.Message)
		}
		return ""
	}
}

// rolloutDone: the rollout with this number is complete. Done alone would answer for the one before.
func rolloutDone(number int64) is {
	return func(st status) string {
		if missing := begun(number)(st); missing != "" {
			return missing
		}
		return done("Completed")(st)
	}
}
