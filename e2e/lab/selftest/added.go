package selftest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"pawl.dev/pawl/e2e/lab"
)

// guest is the program that is added: it says what it was given, and stays.
const guest = "guest"

var guestCommand = []string{"sh", "-c", `echo "port $1 temp $TMPDIR in $PWD"; exec sleep 600`, guest, "{port}"}

// added looks that a program that was added is a component like any other. The
// part after this one is the end of the lab, which it must not outlive.
func (t *test) added(ctx context.Context) error {
	var asked atomic.Int32
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	}))
	defer door.Close()
	program := lab.Program{Name: guest, Command: guestCommand, Ready: door.URL}
	if err := t.lab.Add(ctx, program); err != nil {
		return fmt.Errorf("add it: %w", err)
	}
	if asked.Load() < 3 {
		return errors.New("it counted as ready before it was")
	}
	if err := t.lab.Add(ctx, program); err == nil {
		return errors.New("a second one of the same name was added")
	}
	if err := t.guestWas(true); err != nil {
		return err
	}
	if err := t.lab.Stop(guest); err != nil {
		return fmt.Errorf("stop it: %w", err)
	}
	if err := t.guestWas(false); err != nil {
		return err
	}
	if err := t.lab.Start(guest); err != nil {
		return fmt.Errorf("start it again: %w", err)
	}
	return t.guestWas(true)
}

// guestWas compares status and log with what was asked for.
func (t *test) guestWas(up bool) error {
	all, err := t.lab.Status()
	if err != nil {
		return fmt.Errorf("ask for the status: %w", err)
	}
	c := all[len(all)-1]
	if c.Name != guest || c.Up != up || c.Port == 0 {
		return fmt.Errorf("status says %+v, want %s, up: %t", c, guest, up)
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("ask for the directory: %w", err)
	}
	want := fmt.Sprintf("port %d temp %s in %s\n", c.Port, filepath.Join(t.lab.Dir, "tmp"), dir)
	return eventually(5*time.Second, func() error {
		log, err := os.ReadFile(c.Log)
		if err != nil {
			return fmt.Errorf("read its log: %w", err)
		}
		if !strings.HasSuffix(string(log), want) {
			return fmt.Errorf("it says %q, want %q", log, want)
		}
		return nil
	})
}
