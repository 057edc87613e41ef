#!/bin/sh
# Makes clock.data: samples by the clock of ./walk columns, for the tutorial. It needs
# cyclestack on PATH and the right to sample. The program runs as /tmp/walk, whose symbols
# --sysroot examples/walk finds; the machine is called "example".
set -e
here=$(cd "$(dirname "$0")" && pwd)
cp "$here/bin/walk" /tmp/walk
cd /tmp
unshare --uts sh -c "hostname example; exec cyclestack record --source os -o clock.data -- ./walk columns"
mv clock.data "$here/clock.data"; rm walk
