#!/bin/sh
# Counts what the model {{.Model}} {{.Version}} needs on {{.CPU}}, with Linux's perf, in
# files that `cyclestack report` reads. Made by `cyclestack plan --script`.
#
#	sh collect.sh [-o PREFIX] [-s SECONDS] [COMMAND ARGUMENTS…]
#
# counts the command, or without one the whole machine for SECONDS (default 10){{if gt (len .Runs) 1}},
# in {{len .Runs}} runs: one for each group of events, so that none has to take turns{{end}}.
# The files are PREFIX{{if gt (len .Runs) 1}}-1.csv and so on{{else}}.csv{{end}}. PERF in the environment is another perf to use.
{{range .Notes}}#
# Note: {{.}}
{{end}}set -eu

prefix={{quote .Prefix}}
seconds=10
while getopts o:s: option; do
	case $option in
	o) prefix=$OPTARG ;;
	s) seconds=$OPTARG ;;
	*) echo "usage: $0 [-o PREFIX] [-s SECONDS] [COMMAND ARGUMENTS...]" >&2; exit 2 ;;
	esac
done
shift $((OPTIND - 1))

perf=${PERF:-perf}
if ! command -v "$perf" >/dev/null 2>&1; then
	echo "$0: there is no $perf here: install it (linux-perf, linux-tools), or name one with PERF=/path/to/perf" >&2
	exit 127
fi
{{if .SMT}}# Logical processors share their cores, so the whole machine is counted: what
# the other one of a core does is part of the account.
{{end}}if [ $# -gt 0 ]; then
	scope={{if .SMT}}-a{{end}}
else
	scope=-a
	set -- sleep "$seconds"
fi

# collect FILE EVENTS… -- COMMAND…
collect() {
	file=$1
	shift
	events=
	while [ "$1" != -- ]; do
		events="$events -e $1" # no event has a blank
		shift
	done
	shift
	printf '# cpu: %s\n' {{quote .CPU}} >"$file"
	# shellcheck disable=SC2086
	"$perf" stat $scope -x ';' -o "$file" --append $events -- "$@" || status=$?
	echo "wrote $file" >&2
}

status=0
{{range $i, $run := .Runs}}collect "$prefix{{if gt (len $.Runs) 1}}-{{inc $i}}{{end}}.csv"{{range $run.Events}} \
	{{quote .}}{{end}} \
	-- "$@"
{{end}}{{if and (eq (len .Runs) 1) (gt .Seconds 0.0)}}echo "{{.Groups}} groups took turns: run for {{printf "%.1f" .Seconds}} s at least" >&2
{{end}}echo "cyclestack report{{if .SMT}} --smt on{{end}} --model {{.Model}} $prefix{{if gt (len .Runs) 1}}-*{{end}}.csv   prints the account" >&2
exit "$status"
