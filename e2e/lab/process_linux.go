package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// startTime is field 22 of /proc/PID/stat, in clock ticks since the machine
// booted, with the boot itself: ticks alone repeat on the next one. A zombie
// counts as gone.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", fmt.Errorf("look at process %d: %w", pid, err)
	}
	// The second field is the name in parentheses, and may hold any character.
	_, rest, found := strings.Cut(string(data[max(0, strings.LastIndexByte(string(data), ')')):]), ") ")
	fields := strings.Fields(rest)
	const state, started = 0, 22 - 3 // fields are counted from 1, and rest begins with the third
	if !found || len(fields) <= started {
		return "", fmt.Errorf("look at process %d: unexpected stat %q", pid, data)
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return "", fmt.Errorf("look at process %d: it has ended", pid)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("look at process %d: %w", pid, err)
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[started], nil
}

// residentBytes is the memory that a process occupies, or 0.
func residentBytes(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
