#!/bin/bash
# A rank that fails: one message, the right exit code, all gone, under a parent and under plain mpirun.
# SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
probe=$bin/programs/launch_probe
export TMPDIR=$work

# run CODE ARGUMENTS...: under a parent.
run() {
	local wanted=$1
	shift
	timeout 30 "$probe" "$@" >"$work/out" 2>"$work/all"
	local code=$?
	said "$work/all" >"$work/err"
	[ $code = "$wanted" ] || { cat "$work/err"; fail "$*: exit code $code, expected $wanted"; }
}
lines() {
	[ "$(wc -l <"$work/err")" = "$1" ] || { cat "$work/err"; fail "expected $1 line(s)"; }
}

run 3 --ranks 3 fail 1 # the lowest of two that fail differently
expect '^mural: rank 1 of 3: label 101 is out of range$' "$work/err"
expect '^       labels.gz:16$' "$work/err"
lines 2
run 3 --ranks 3 fail 0
expect '^mural: rank 0 of 3: label 100 is out of range$' "$work/err"
run 1 --ranks 4 fail-same
expect '^mural: rank 1 of 4: the disk is full$' "$work/err"
expect '^       same on ranks 2-3$' "$work/err"
lines 2
run 1 --ranks 3 alone 2 # the others are in a collective
expect '^mural: rank 2 of 3: the disk is full$' "$work/err"
lines 1
if [ "$flavour" = openmpi ]; then
	run 3 --ranks 3 exit 1
	expect '^mural: rank 1 of 3 ended with code 3 and left no message$' "$work/err"
	lines 1
	run 1 --ranks 3 crash 1
	expect '^mural: rank 1 of 3 \(node .*\) was killed by signal 11 \(Segmentation fault\)$' "$work/err"
	lines 1
else
	for end in exit crash; do
		timeout 30 "$probe" --ranks 3 $end 1 2>"$work/err" && fail "$end: exit code 0"
		said "$work/err" | grep -q '^mural: ' || fail "$end: no message"
	done
fi

# Without a parent: rank 0 tells what is agreed on, a rank tells by itself what is not. mpirun adds its own words.
mpirun -n 3 "$probe" fail 1 >"$work/out" 2>"$work/err"
code=$?
[ $code = 3 ] || [ $code = 1 ] || fail "mpirun: exit code $code"
expect '^mural: ' "$work/err"
expect '^mural: rank 1: label 101 is out of range$' "$work/err"
mpirun -n 3 "$probe" alone 2 >"$work/out" 2>"$work/err" && fail "mpirun: exit code 0"
expect '^mural: the disk is full$' "$work/err"

ls -d "$work"/mural-* 2>/dev/null && fail "temporary folders were left"
exit 0
