#!/bin/sh
# Counts what the model {{.Model}} {{.Version}} needs on {{.CPU}}, with Linux's perf, in
# files that `cyclestack report` reads. Made by `cyclestack plan --script`.
#
#	sh collect.sh [-o PREFIX] [-s SECONDS] [COMMAND ARGUMENTS…]
#
# counts the command, or without one {{if .Program}}the program that stands below, or with -s {{end}}the whole machine for SECONDS{{if not .Program}} (default 10){{end}}{{if .Several}},
# in {{len .Runs}} runs: one for each group of events, so that none has to take turns{{end}}.
# The files are PREFIX{{if .Several}}-1.csv and so on{{else}}.csv{{end}}. PERF in the environment is another perf to use.
# Where the machine is not what the plan supposes nothing is counted, unless
# CYCLESTACK_FORCE=1 is in the environment.
{{range .Notes}}#
# Note: {{.}}
{{end}}set -eu

prefix={{quote .Prefix}}
seconds={{if not .Program}}10{{end}}
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

{{if or .Machine .Watchdog .Divided}}# unfit WHY: the machine is not what the plan supposes.
unfit() {
	if [ "${CYCLESTACK_FORCE-}" = 1 ]; then
		echo "$0: $1: counting all the same" >&2
	else
		echo "$0: $1 (CYCLESTACK_FORCE=1 counts all the same)" >&2
		exit 125
	fi
}

{{end}}cpu='cpu: {{.CPU}}'
{{with .Machine}}{{if .Fields}}
# field NAME: what the kernel says of the first processor
field() { sed -n "/^$1[[:space:]]*: /{s///p;q;}" /proc/cpuinfo 2>/dev/null || :; }
{{end}}machine=$({{.Command}} || :)
[ -n "$machine" ] || machine=$(uname -m)
# shellcheck disable=SC2086
if ! printf '%s\n' $machine | grep -Eiqx {{quote .Pattern}}; then
	unfit "the plan is for {{$.CPU}}, and this machine is $machine: make one for it (--cpu)"
{{if .Exact}}elif [ "$machine" != "$(uname -m)" ]; then
	cpu="cpuid : $machine" # what it is exactly
{{end}}fi
{{end}}{{if .Watchdog}}if [ "$(cat /proc/sys/kernel/nmi_watchdog 2>/dev/null)" = 1 ]; then
	unfit 'the NMI watchdog holds a counter that the plan needs: switch it off (sysctl kernel.nmi_watchdog=0), or make a plan with --watchdog'
fi
{{end}}{{if .Divided}}smt=/sys/devices/system/cpu/smt
if [ "$(cat $smt/active 2>/dev/null)" = 1 ]; then
	unfit 'SMT is on, which leaves each logical processor fewer counters than the plan needs: make one with --smt on'
fi
case $(cat $smt/control 2>/dev/null) in
off | forceoff) unfit 'SMT is off in Linux but not in the firmware, which leaves fewer counters than the plan needs: make one with --counters {{.Divided}}' ;;
esac
{{end}}
{{if .SMT}}# Logical processors share their cores, so the whole machine is counted: what
# the other one of a core does is part of the account.
{{end}}{{with .Program}}if [ $# -eq 0 ] && [ -z "$seconds" ]; then
	set --{{range .}} {{quote .}}{{end}}
fi
{{end}}if [ $# -gt 0 ]; then
	scope={{if .SMT}}-a{{end}}
else
	scope=-a
	set -- sleep "$seconds"
fi

# collect {{if .Several}}RUN {{end}}EVENTS… -- COMMAND…
{{if .Several}}plan=$(uname -n)-$(date +%Y%m%d%H%M%S)-$$
{{end}}collect() {
{{if .Several}}	file=$prefix-$1.csv
	printf '# %s\n# run %s of {{len .Runs}} of cyclestack plan %s\n' "$cpu" "$1" "$plan" >"$file"
	shift
{{else}}	file=$prefix.csv
	printf '# %s\n' "$cpu" >"$file"
{{end}}	events=
	while [ "$1" != -- ]; do
		events="$events -e $1" # no event has a blank
		shift
	done
	shift
	ended=0
	# shellcheck disable=SC2086
	"$perf" stat $scope -x ';' -o "$file" --append $events -- "$@" || ended=$?
	if ! grep -q '^[^#]' "$file"; then
		rm -f "$file"
		echo "$0: $perf counted nothing, and ended with status $ended: there is no $file" >&2
		[ "$ended" -gt 0 ] || ended=1
		exit "$ended"
	fi
	[ "$ended" -eq 0 ] || status=$ended
	echo "wrote $file" >&2
}

status=0
{{range $i, $run := .Runs}}collect{{if $.Several}} {{inc $i}}{{end}}{{range $run.Events}} \
	{{quote .}}{{end}} \
	-- "$@"
{{end}}{{if and (not .Several) (gt .Seconds 0.0)}}echo "{{.Groups}} groups took turns: run for {{printf "%.1f" .Seconds}} s at least" >&2
{{end}}echo "cyclestack report{{if .SMT}} --smt on{{end}} --model {{.Model}} $prefix{{if .Several}}-*{{end}}.csv   prints the account" >&2
exit "$status"
