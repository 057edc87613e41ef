// Rig fetches what emulated guests are made of: QEMU with the libraries it
// needs, kernels, and the kernels' perf. They come from Debian's archive through apt, which checks
// its signatures; nothing is installed, and the system's own apt is left as it is.
//
//	go run ./internal/guest/rig [-dir DIRECTORY] [ARCH…]
//
// ARCH is arm64, ppc64le or riscv64; without one, all of them. What is there
// already is kept: remove the directory to have newer versions.
//
// It needs Debian's apt and dpkg, and some 100 MB a download. The archive is the
// one that the system's apt uses, or CYCLESTACK_DEBIAN, a URL.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/cyclestack/cyclestack/internal/guest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rig:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("rig", flag.ExitOnError)
	dir := flags.String("dir", "", "the rig's `directory` (default $CYCLESTACK_GUESTS, or in the user's cache)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	archs := guest.Archs
	if flags.NArg() > 0 {
		archs = nil
		for _, name := range flags.Args() {
			a, err := guest.Lookup(name)
			if err != nil {
				return err
			}
			archs = append(archs, a)
		}
	}
	rig, err := guest.FindRig()
	if *dir != "" {
		rig, err = guest.Rig{Dir: *dir}, nil
	}
	if err != nil {
		return err
	}
	return build(ctx, rig, archs)
}

// build completes a rig for the architectures given.
func build(ctx context.Context, rig guest.Rig, archs []guest.Arch) error {
	var missing []guest.Arch
	for _, a := range archs {
		if rig.Missing(a) != nil {
			missing = append(missing, a)
		}
	}
	if len(missing) > 0 {
		archive, err := newApt(ctx, rig.Dir, missing)
		if err != nil {
			return err
		}
		for _, a := range missing {
			for _, part := range []struct {
				path  string
				fetch func(context.Context, *apt, guest.Rig, guest.Arch) error
			}{{rig.Emulator(a), fetchQEMU}, {rig.Kernel(a), fetchKernel}, {rig.Perf(a), fetchPerf}} {
				if _, err := os.Stat(part.path); err == nil {
					continue
				}
				if err := part.fetch(ctx, archive, rig, a); err != nil {
					return err
				}
			}
		}
		if err := archive.clean(); err != nil {
			return err
		}
	}
	for _, a := range archs {
		fmt.Printf("%s: there is all that guests need, in %s\n", a.GOARCH, rig.Dir)
	}
	return nil
}
