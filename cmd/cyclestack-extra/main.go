// Command cyclestack-extra has the commands of cyclestack that need the network or large
// libraries. cyclestack runs it for them.
package main

import (
	"context"
	"os"

	"github.com/cyclestack/cyclestack/internal/extra"
)

func main() {
	os.Exit(extra.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
