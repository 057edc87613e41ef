package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with a flag's value for people: the package that reads
// numbers speaks of its own functions.
func flagError(_ *cobra.Command, err error) error {
	var bad *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &bad) || !errors.As(err, &number) {
		return err
	}
	what := "it is a number"
	switch {
	case errors.Is(number.Err, strconv.ErrRange):
		what = "that is out of range"
	case number.Func == "ParseInt":
		what = "it is a whole number"
	case number.Func == "ParseUint":
		what = "it is a whole number, and not negative"
	case number.Func == "ParseBool":
		what = "it is true or false"
	}
	return fmt.Errorf("--%s %s: %s", bad.GetFlag().Name, bad.GetValue(), what)
}
