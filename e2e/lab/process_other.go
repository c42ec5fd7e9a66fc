//go:build !linux

package lab

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// startTime is the start as ps tells it, to the second. A zombie counts as
// gone.
func startTime(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("look at process %d: %w", pid, err)
	}
	state, started, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if started == "" || strings.HasPrefix(state, "Z") {
		return "", fmt.Errorf("look at process %d: it has ended", pid)
	}
	return strings.TrimSpace(started), nil
}

// residentBytes is the memory that a process occupies, or 0.
func residentBytes(pid int) int64 {
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
