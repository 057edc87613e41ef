#!/bin/sh
# Counts what the model {{model}} {{version}} needs on {{cpu}}, with Linux's perf, in
# files that `{{reads}}` reads. Made by `{{made}}`.
#
#	sh collect.sh [-o PREFIX] [-s SECONDS] [COMMAND ARGUMENTS…]
#
# counts the command, or without one {{if program}}the program that stands below, or with -s {{end}}the whole machine for SECONDS{{if program}}{{else}} (default 10){{end}}{{if several}},
# in {{runs}} runs: one for each group of events, so that none has to take turns{{end}}.
# The files are PREFIX{{if several}}-1.csv and so on{{else}}.csv{{end}}. PERF in the environment is another perf to use.
# Where the machine is not what the plan supposes nothing is counted, unless
# CYCLESTACK_FORCE=1 is in the environment.
{{notes}}set -eu

prefix={{prefix}}
seconds={{if program}}{{else}}10{{end}}
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

{{if checked}}# unfit WHY: the machine is not what the plan supposes.
unfit() {
	if [ "${CYCLESTACK_FORCE-}" = 1 ]; then
		echo "$0: $1: counting all the same" >&2
	else
		echo "$0: $1 (CYCLESTACK_FORCE=1 counts all the same)" >&2
		exit 125
	fi
}

{{end}}cpu='cpu: {{cpu}}'
{{if machine}}{{if fields}}
# field NAME: what the kernel says of the first processor
field() { sed -n "/^$1[[:space:]]*: /{s///p;q;}" /proc/cpuinfo 2>/dev/null || :; }
{{end}}machine=$({{identify}} || :)
[ -n "$machine" ] || machine=$(uname -m)
# shellcheck disable=SC2086
if ! printf '%s\n' $machine | grep -Eiqx {{pattern}}; then
	unfit "the plan is for {{cpu}}, and this machine is $machine: make one for it ({{other}})"
{{if exact}}elif [ "$machine" != "$(uname -m)" ]; then
	cpu="cpuid : $machine" # what it is exactly
{{end}}fi
{{end}}{{if watchdog}}if [ "$(cat /proc/sys/kernel/nmi_watchdog 2>/dev/null)" = 1 ]; then
	unfit 'the NMI watchdog holds a counter that the plan needs: switch it off (sysctl kernel.nmi_watchdog=0), or make a plan with {{counted}}'
fi
{{end}}{{if divided}}smt=/sys/devices/system/cpu/smt
if [ "$(cat $smt/active 2>/dev/null)" = 1 ]; then
	unfit 'SMT is on, which leaves each logical processor fewer counters than the plan needs: make one with {{shared}}'
fi
case $(cat $smt/control 2>/dev/null) in
off | forceoff) unfit 'SMT is off in Linux but not in the firmware, which leaves fewer counters than the plan needs: make one with --counters {{counters}}' ;;
esac
{{end}}
{{if smt}}# Logical processors share their cores, so the whole machine is counted: what
# the other one of a core does is part of the account.
{{end}}{{if program}}if [ $# -eq 0 ] && [ -z "$seconds" ]; then
	set --{{program}}
fi
{{end}}if [ $# -gt 0 ]; then
	scope={{if percpu}}'-a -A'{{else}}{{if smt}}-a{{end}}{{end}}
else
	scope={{if percpu}}'-a -A'{{else}}-a{{end}}
	set -- sleep "$seconds"
fi

# collect {{if several}}RUN {{end}}EVENTS… -- COMMAND…
{{if several}}plan=$(uname -n)-$(date +%Y%m%d%H%M%S)-$$
{{end}}collect() {
{{if several}}	file=$prefix-$1.csv
	printf '# %s\n# run %s of {{runs}} of cyclestack plan %s\n' "$cpu" "$1" "$plan" >"$file"
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
{{collect}}{{if timed}}echo "{{groups}} groups took turns: run for {{seconds}} s at least" >&2
{{end}}{{if percpu}}siblings=$(sort -u /sys/devices/system/cpu/cpu*/topology/thread_siblings_list | tr ',-' '::' | paste -s -d , -)
{{end}}echo "{{report}} $prefix{{if several}}-*{{end}}.csv   prints the account" >&2
exit "$status"
