#!/bin/bash
# Ranks that hang: one that is stopped, one that does not get on, all at once; in any case one message that names the rank with host,
# device and last operation, and all gone. And what looks like it and is none: a long computation, slow reads, rest, a watch
# that ends and begins again. Under a parent and under plain mpirun. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
probe=$bin/programs/launch_probe
export TMPDIR=$work PROBE_DIR=$work/pids
mkdir "$PROBE_DIR"
limit=2
# Under a sanitizer on a busy machine a sound rank may be silent for a while.
case ${ASAN_OPTIONS:-}${MURAL_SLOW:-} in *slow*) limit=6 ;; esac
export PROBE_HANG=$limit

are_started() {
	local r
	for r in 0 1 2; do
		[ -s "$PROBE_DIR/pid-$r" ] || return 1
	done
}
are_gone() {
	local r
	for r in 0 1 2; do
		kill -0 "$(cat "$PROBE_DIR/pid-$r")" 2>/dev/null && return 1
	done
	return 0
}
has_ended() {
	! kill -0 "$1" 2>/dev/null
}

# run CODE ARGUMENTS...: under a parent.
run() {
	local wanted=$1
	shift
	timeout 60 "$probe" --ranks 3 "$@" >"$work/out" 2>"$work/all"
	local code=$?
	said "$work/all" >"$work/err"
	[ $code = "$wanted" ] || { cat "$work/err"; fail "$*: exit code $code, expected $wanted"; }
}
lines() {
	[ "$(wc -l <"$work/err")" = "$1" ] || { cat "$work/err"; fail "expected $1 line(s)"; }
}
stuck='is stuck: nothing done for [0-9]+ s; last operation: reading images for the micro-batch \(2\), step 17$'
silent='was not heard of for [0-9]+ s: its process is stopped or its host is lost; last operation: '

for mode in busy slow rest group; do
	run 0 $mode 1
	expect '^sum 6 of 3 ranks$' "$work/out"
	lines 0
done
run 0 again
expect '^sum 6 of 3 ranks$' "$work/out" 4
lines 0

for rank in 1 0; do
	run 1 stuck $rank
	expect "^mural: rank $rank of 3 \\(node .*, a probe\\) $stuck" "$work/err"
	expect "^       mural.hang_seconds = $limit\$" "$work/err"
	lines 2
done
run 1 away # nobody is in a collective
expect "^mural: rank [0-2] of 3 \\(node .*, a probe\\) $stuck" "$work/err"
lines 2

# stop LAUNCHER...: rank 1 is stopped in the middle of collectives.
stop() {
	rm -f "$PROBE_DIR"/*
	"$@" >"$work/out" 2>"$work/all" &
	local launcher=$! code
	wait_for 60 are_started || fail "the ranks did not start"
	sleep 1
	kill -STOP "$(cat "$PROBE_DIR/pid-1")"
	wait_for 30 has_ended $launcher || { kill -KILL $launcher; fail "the launcher is still there"; }
	wait $launcher
	code=$?
	[ $code = 1 ] || { cat "$work/all"; fail "a stopped rank: exit code $code, expected 1"; }
	wait_for 10 are_gone || fail "a stopped rank: ranks are still there"
	said "$work/all" >"$work/err"
}
stop "$probe" --ranks 3 loop
expect "^mural: rank 1 of 3 \\(node .*, a probe\\) $silent" "$work/err"
lines 2
stop mpirun -n 3 "$probe" loop
expect "^mural: rank 1 of 3 \\(node .*, a probe\\) $silent" "$work/err"
expect '^mural: ' "$work/err"

# A pause of all is none of one.
rm -f "$PROBE_DIR"/*
"$probe" --ranks 3 loop >"$work/out" 2>"$work/all" &
parent=$!
wait_for 60 are_started || fail "the ranks did not start"
# shellcheck disable=SC2046
kill -STOP $(cat "$PROBE_DIR"/pid-?)
sleep $((limit + 2))
# shellcheck disable=SC2046
kill -CONT $(cat "$PROBE_DIR"/pid-?)
sleep $((limit + 1))
kill -0 $parent || { cat "$work/all"; fail "a pause of all ended the run"; }
kill -KILL $parent
{ wait $parent; } 2>/dev/null
wait_for 10 are_gone || fail "ranks are still there"
exit 0
