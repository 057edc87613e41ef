// Command cyclestack says where a program's CPU cycles went.
package main

import (
	"context"
	"os"

	"github.com/cyclestack/cyclestack/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
