package main

import (
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// setLogger makes every log line, those of client-go included, one of the same stream.
func setLogger(o options, out io.Writer) error {
	logger, err := newLogger(o, out)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return nil
}

// newLogger has no sampler, which the logger of controller-runtime has: of more than a hundred lines a second with one
// message that drops most, and the lines that say "recorded" are kept to verify the log by.
func newLogger(o options, out io.Writer) (logr.Logger, error) {
	level, err := zapcore.ParseLevel(o.logLevel)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level: %w", err)
	}
	words := zap.NewProductionEncoderConfig()
	words.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(words)
	if o.logFormat == "console" {
		words = zap.NewDevelopmentEncoderConfig()
		words.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		encoder = zapcore.NewConsoleEncoder(words)
	}
	sink := zapcore.AddSync(out)
	core := zapcore.NewCore(&ctrlzap.KubeAwareEncoder{Encoder: encoder}, sink, level)
	return zapr.NewLogger(zap.New(core, zap.AddStacktrace(zapcore.DPanicLevel), zap.ErrorOutput(sink))), nil
}
