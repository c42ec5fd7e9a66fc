package controllers

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
)

// WatchErrors answers the errors of all watches: each kind of error is said once per resource, not with every try, and
// with what can be done about it. The watches themselves back off and try for ever.
func WatchErrors(logger logr.Logger) cache.WatchErrorHandlerWithContext {
	var mutex sync.Mutex
	said := map[string]string{}
	return func(_ context.Context, r *cache.Reflector, err error) {
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return // how watches end every few minutes
		}
		kind, remedy := Diagnose(err)
		mutex.Lock()
		defer mutex.Unlock()
		if said[r.TypeDescription()] == kind {
			return
		}
		said[r.TypeDescription()] = kind
		logger.Error(err, "cannot watch, will try again", logKind, r.TypeDescription(), logReason, kind, logRemedy, remedy)
	}
}
