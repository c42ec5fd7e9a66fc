// Command demo tells what Pawl is for in a minute: a rollout that goes well, one that goes wrong, and the way back. It
// brings up a control plane of its own (e2e/lab), runs Pawl there under its service account, and types the commands of
// a person; what they print is shown as it comes. Nothing is left running, however it ends.
//
// It is a test as well: the rows that kubectl get rolloutprogress showed must be those of testdata/rows.golden.
//
//	make demo
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// most is how long the demo may take, on a machine that has other things to do; left alone it needs a minute.
const most = 10 * time.Minute

func main() {
	rewrite := flag.Bool("rewrite", false, "write what was seen to "+goldenFile+" instead of comparing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, cancel := context.WithTimeout(ctx, most)
	err := run(ctx, newPage(os.Stdout), *rewrite)
	interrupted := errors.Is(ctx.Err(), context.Canceled)
	cancel()
	stop()
	switch {
	case err == nil:
	case interrupted && !errors.Is(err, errLeft):
		fmt.Fprintln(os.Stderr, "demo: interrupted; nothing is left running")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p *page, rewrite bool) (err error) {
	s := &story{page: p}
	s.page.title("Pawl: a rollout that goes well, one that goes wrong, and the way back")
	s.page.say("A control plane of its own is starting: etcd, API server and controllers are real, the nodes are " +
		"played. With it comes Pawl, under its own service account, and with --stall-grace=" + stallGrace +
		" instead of the usual 30s, so that a verdict comes while you watch.")
	began := time.Now()
	s.cluster, err = startCluster(ctx)
	defer func() { err = errors.Join(err, s.cluster.end()) }()
	if err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{s.create, s.goodImage, s.badImage, s.revert, s.history} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	s.page.line("")
	s.page.say(fmt.Sprintf("That was all, in %s.", time.Since(began).Round(time.Second)))
	if rewrite {
		return s.rows.save()
	}
	return s.rows.check()
}
