#!/bin/bash
# A rank of a training is killed in the middle of it: all gone within seconds, one message, exit code 1, and nothing under a
# final name that a finished run would have. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
[ "$flavour" = openmpi ] || { echo "skipped: only Open MPI's ranks are children of mpirun"; exit 77; }

children_of() {
	cat "/proc/$1/task/$1/children" 2>/dev/null
}
is_training() {
	[ -f "$work/run/steps.csv" ] && [ "$(wc -l <"$work/run/steps.csv")" -gt 3 ]
}
has_ended() {
	! kill -0 "$1" 2>/dev/null
}

"$program" train --ranks 3 --data synthetic --model mu --image-size 16 --patch 4 --channels 1 --classes 10 --batch 12 \
	--epochs 100000 --run-dir "$work/run" >"$work/out" 2>"$work/all" &
parent=$!
wait_for 60 is_training || { cat "$work/all"; fail "the training did not start"; }
ranks=$(children_of "$(children_of $parent | tr -d ' ')")
[ "$(echo "$ranks" | wc -w)" = 3 ] || { kill $parent; fail "expected 3 ranks, found: $ranks"; }
kill -KILL "$(echo "$ranks" | cut -d ' ' -f 2)"
wait_for 10 has_ended $parent || { kill -KILL $parent; fail "the parent is still there"; }
wait $parent
code=$?
[ $code = 1 ] || { cat "$work/all"; fail "exit code $code, expected 1"; }
for pid in $ranks; do
	has_ended "$pid" || fail "a rank is still there"
done
expect '^mural: rank 1 of 3 \(node .*\) was killed by signal 9 \(Killed\)' "$work/all"
expect '^mural: ' "$work/all" 2 # what it starts, and this
[ ! -e "$work/run/result.json" ] || fail "result.json of a run that did not finish"
ls -d "$work"/mural-* 2>/dev/null && fail "temporary folders were left"
exit 0
