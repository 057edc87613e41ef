package counts

// ErrLayout is the error of tables with different layouts.
var ErrLayout = errLayout
