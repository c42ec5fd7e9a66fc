package lab

import (
	"fmt"
	"io"
	"os"
	"time"
)

// showProgress tells what goes on and for how long: in place on a terminal,
// else with a line now and then, for logs that are cut off when nothing comes.
// The returned function ends it.
func showProgress(out io.Writer, what string) func(ok bool) {
	if out == nil {
		return func(bool) {}
	}
	every, before, after := 15*time.Second, "", "\n"
	if isTerminal(out) {
		every, before, after = time.Second, "\r\x1b[K", ""
	}
	began := time.Now()
	elapsed := func() time.Duration { return time.Since(began).Round(time.Second) }
	_, _ = fmt.Fprintf(out, "%s\n", what)
	stop, stopped := make(chan bool), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_, _ = fmt.Fprintf(out, "%s  still building, %s so far%s", before, elapsed(), after)
			case ok := <-stop:
				end := "built"
				if !ok {
					end = "gave up"
				}
				_, _ = fmt.Fprintf(out, "%s  %s after %s\n", before, end, elapsed())
				return
			}
		}
	}()
	return func(ok bool) {
		stop <- ok
		<-stopped
	}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
