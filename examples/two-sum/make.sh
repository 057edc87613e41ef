#!/bin/sh
# Makes linear.txt, map.txt and simd.txt of the three outputs of perf stat in a file that was
# published with the program it is about. The counts and the layout stay as they are.
#
#	git clone https://github.com/grahamking/two_sum
#	git -C two_sum show 16e7cd2:perf_stat.txt | sh examples/two-sum/make.sh examples/two-sum
set -eu
awk -v dir="${1:-.}" '
/Performance counter stats/ {
	name = /two_sum 300 l/ ? "linear" : /two_sum 300 m/ ? "map" : "simd"
	file = dir "/" name ".txt"
	print "# perf stat of github.com/grahamking/two_sum, 8 October 2022 (G. King, MIT License)." > file
	print "# The processor is not named there. Five slots a cycle are those of Ice Lake, Tiger Lake or Rocket Lake.\n" > file
}
/^---/ { file = ""; next }
file != "" { line[file] = line[file] $0 "\n" }
END { for (f in line) { sub(/\n+$/, "\n", line[f]); printf "%s", line[f] > f } }'
