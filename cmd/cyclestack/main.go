// Command cyclestack says where a program's CPU cycles went.
package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/cyclestack/cyclestack/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
