package main

import (
	"fmt"
	"io"

	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// setLogger makes every log line, those of client-go included, one of the same stream.
func setLogger(o options, out io.Writer) error {
	level, err := zapcore.ParseLevel(o.logLevel)
	if err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	encoder := zap.JSONEncoder(func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.RFC3339NanoTimeEncoder })
	if o.logFormat == "console" {
		encoder = zap.ConsoleEncoder(func(c *zapcore.EncoderConfig) { c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000") })
	}
	logger := zap.New(zap.WriteTo(out), zap.Level(level), zap.StacktraceLevel(zapcore.DPanicLevel), encoder)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return nil
}
