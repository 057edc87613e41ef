// Package emulator simulates a program in one run: QEMU's user mode emulation executes it. A
// plugin counts the executions of each block and writes what threads access. Here the caches,
// the branch predictor and the core are simulated.
//
//	r, err := emulator.Run(ctx, emulator.Command{Args: args}, emulator.Options{…})
//	defer r.Close()
//	err = r.Write(w) // in callgrind's format
//
// The caches see the whole run. The order of code is seen in samples, at distances that grow up
// to a limit: a longer part for the branch predictor, and at its end a short window for the
// core. This is systematic sampling with functional warming: R. E. Wunderlich and others,
// SMARTS (ISCA 2003). The cycles of an instruction are its executions in the whole run times
// its mean cycles in windows.
//
// The plugin is a C file in the folder plugin, under the GNU General Public License. It is a
// program of its own, and talks to this package through a socket and a file. The user's
// compiler builds it when it is first needed.
package emulator
