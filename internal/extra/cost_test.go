//go:build linux

package extra_test

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkCost measures the processor time of top and serve, as a share of one processor.
// They follow the whole machine once a second:
//
//	go test ./internal/extra -run xxx -bench Cost -benchtime 1x
//
// The time to start is left out.
func BenchmarkCost(b *testing.B) {
	const span = 20 * time.Second
	for name, args := range map[string][]string{"top": {"top", "-a"}, "serve": {"serve", "-a", "-I", "1000"}, "top by function": {"top", "-a", "--by", "function"}} {
		b.Run(name, func(b *testing.B) {
			share := 0.0
			for range b.N {
				share += running(b, span+5*time.Second, args) - running(b, 5*time.Second, args)
			}
			b.ReportMetric(100*share/span.Seconds()/float64(b.N), "%cpu")
		})
	}
}

// running is the processor time in seconds of a command that runs in a terminal for so long.
func running(b *testing.B, span time.Duration, args []string) float64 {
	b.Helper()
	p := inTerminal(b, 24, 80, nil, args...)
	time.Sleep(span)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	<-p.done
	state := p.cmd.ProcessState
	return (state.UserTime() + state.SystemTime()).Seconds()
}
