package extra

import (
	"cmp"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cyclestack/cyclestack/internal/cli"
	"github.com/cyclestack/cyclestack/internal/fault"
	"github.com/cyclestack/cyclestack/internal/output"
	"github.com/cyclestack/cyclestack/internal/paint"
)

// newShow makes the command show.
func newShow(k *cli.Kit) *cobra.Command {
	var file, how string
	scale := 1.0
	cmd := &cobra.Command{
		Use:   "show [FILE.svg]",
		Short: "Show a picture in the terminal, or make a PNG of it",
		Long: `show reads a picture that cyclestack has drawn as SVG, from a file or from standard input.
It shows the picture in terminals that can, as sixels or in kitty's protocol, or writes it
as PNG. A terminal is asked whether it has sixels. kitty and its like say so in the
environment.`,
		Example: `  cyclestack report --format svg examples/walk/columns-1.txt | cyclestack show
  cyclestack show -o tree.png --scale 2 tree.svg`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			in, name := k.In, "standard input"
			if len(args) > 0 && args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return fault.As(fault.Input, err)
				}
				defer f.Close()
				in, name = f, args[0]
			}
			if !(scale >= 0.1 && scale <= 10) {
				return fault.Usagef("--scale %g: from 0.1 to 10", scale)
			}
			write, err := shower(k, how, file)
			if err != nil {
				return err
			}
			img, err := paint.Draw(in, scale)
			if err != nil {
				return fault.Inputf("%s: %v", name, err)
			}
			if file != "" {
				return output.WriteFile(file, func(w io.Writer) error { return paint.PNG(w, img) })
			}
			switch write {
			case "kitty":
				return paint.Kitty(k.Out, img)
			case "sixel":
				return paint.Sixel(k.Out, img)
			}
			return paint.PNG(k.Out, img)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write a PNG into `FILE`")
	cmd.Flags().StringVar(&how, "format", "", "`png|sixel|kitty`; on a terminal what it can show")
	cmd.Flags().Float64Var(&scale, "scale", scale, "make it larger by a `FACTOR`")
	return cmd
}

// shower chooses how to show a picture.
func shower(k *cli.Kit, how, file string) (string, error) {
	f, _ := k.Out.(*os.File)
	terminal := f != nil && term.IsTerminal(int(f.Fd()))
	switch {
	case file != "" && how != "" && how != "png":
		return "", fault.Usagef("--format %s is for terminals, and -o writes a PNG", how)
	case file != "" || how == "sixel" || how == "kitty" || how == "png" && !terminal:
		return how, nil
	case how == "png":
		return "", fault.Usagef("a PNG is not for terminals: -o FILE")
	case how != "":
		return "", fault.Usagef("--format %s: there are png, sixel, kitty", how)
	case !terminal:
		return "png", nil
	case os.Getenv("KITTY_WINDOW_ID") != "" || strings.Contains(os.Getenv("TERM"), "kitty") || strings.Contains(cmp.Or(os.Getenv("TERM_PROGRAM"), os.Getenv("TERM")), "ghostty"):
		return "kitty", nil
	case sixels(f):
		return "sixel", nil
	}
	return "", fault.Machinef("this terminal shows no pictures: -o FILE writes a PNG")
}

// patience is how long a terminal has to answer.
const patience = 300 * time.Millisecond

// sixels asks a terminal for its attributes (DA1): 4 stands for sixels.
func sixels(f *os.File) bool {
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return false
	}
	defer func() { _ = term.Restore(int(f.Fd()), before) }()
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	if _, err := tty.WriteString("\x1b[c"); err != nil {
		return false
	}
	answer := make(chan string, 1)
	go func() {
		var all strings.Builder
		buf := make([]byte, 64)
		for !strings.Contains(all.String(), "c") && all.Len() < 256 {
			n, err := tty.Read(buf)
			if err != nil {
				break
			}
			all.Write(buf[:n])
		}
		answer <- all.String()
	}()
	select {
	case text := <-answer:
		_, list, _ := strings.Cut(text, "?")
		for part := range strings.SplitSeq(strings.TrimSuffix(list, "c"), ";") {
			if part == "4" {
				return true
			}
		}
	case <-time.After(patience):
	}
	return false
}
