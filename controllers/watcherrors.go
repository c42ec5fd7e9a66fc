package controllers

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// quietFor is how long a watch must have had no error for the next one to be news; reflectors try at least twice a minute.
const quietFor = 5 * time.Minute

// WatchErrors answers the errors of all watches: each kind of error is said once per resource, not with every try, and
// with what can be done about it. The watches themselves back off and try for ever.
func WatchErrors(logger logr.Logger) cache.WatchErrorHandlerWithContext {
	type complaint struct {
		kind string
		last time.Time
	}
	var mutex sync.Mutex
	said := map[string]complaint{}
	return func(_ context.Context, r *cache.Reflector, err error) {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return // how watches end every few minutes
		}
		kind, remedy := Diagnose(err)
		mutex.Lock()
		defer mutex.Unlock()
		before, now := said[r.TypeDescription()], time.Now()
		said[r.TypeDescription()] = complaint{kind, now}
		if before.kind == kind && now.Sub(before.last) < quietFor {
			return
		}
		logger.Error(err, "cannot watch, will try again", logKind, r.TypeDescription(), logReason, kind, logRemedy, remedy)
	}
}
