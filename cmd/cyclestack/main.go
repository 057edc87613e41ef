// Command cyclestack says where a program's CPU cycles went.
package main

import (
	"context"
	"os"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/collector"
)

func main() {
	collector.Late()
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
