#!/bin/bash
# Ranks, mpirun or the parent are killed in the middle of a collective: all gone within seconds, one message, exit code 1.
# SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
probe=$bin/programs/launch_probe
export TMPDIR=$work PROBE_DIR=$work/pids
RANKS="0 1 2"

are_started() {
	local r
	for r in $RANKS; do
		[ -s "$PROBE_DIR/pid-$r" ] || return 1
	done
}
are_gone() {
	local r
	for r in $RANKS; do
		kill -0 "$(cat "$PROBE_DIR/pid-$r")" 2>/dev/null && return 1
	done
	return 0
}
has_ended() {
	! kill -0 "$1" 2>/dev/null
}
mpirun_of() { # its only child
	tr -d ' ' <"/proc/$1/task/$1/children"
}

# attack SIGNAL TARGET CODE: kills TARGET (a rank, mpirun or parent) of a running probe.
attack() {
	rm -rf "$PROBE_DIR"
	mkdir "$PROBE_DIR"
	"$probe" --ranks 3 loop >"$work/out" 2>"$work/all" &
	local parent=$! pid code
	wait_for 60 are_started || fail "the ranks did not start"
	case $2 in
	parent) pid=$parent ;;
	mpirun) pid=$(mpirun_of $parent) ;;
	*) pid=$(cat "$PROBE_DIR/pid-$2") ;;
	esac
	kill -"$1" "$pid"
	wait_for 10 has_ended $parent || fail "$1 to $2: the parent is still there"
	wait $parent
	code=$?
	[ $code = "$3" ] || { cat "$work/all"; fail "$1 to $2: exit code $code, expected $3"; }
	wait_for 10 are_gone || fail "$1 to $2: ranks are still there"
	said "$work/all" >"$work/err"
}

for rank in 1 0; do
	attack KILL $rank 1
	if [ "$flavour" = openmpi ]; then
		expect "^mural: rank $rank of 3 \(node .*\) was killed by signal 9 \(Killed\)" "$work/err"
		[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "more than one message"; }
	fi
	expect '^mural: ' "$work/err"
done
attack KILL mpirun 1
expect '^mural: mpirun was killed by signal 9 \(Killed\)$' "$work/err"
attack TERM parent 1
expect '^mural: stopped by signal 15 \(Terminated\)$' "$work/err"
[ "$(wc -l <"$work/err")" = 1 ] || { cat "$work/err"; fail "more than one message"; }
ls -d "$work"/mural-* 2>/dev/null && fail "temporary folders were left"
attack KILL parent 137 # says nothing, and still nobody stays
exit 0
