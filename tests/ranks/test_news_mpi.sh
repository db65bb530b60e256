#!/bin/bash
# News of steps where somebody is left out, on 2 to 4 ranks over MPI; and in a training: such a rank's wish to stop is heard, its death
# ends all. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"

for ranks in 2 3 4; do
	MURAL_TEST_COMM=$flavour timeout 100 mpirun -n $ranks "$bin/ranks_test_news" >"$work/out" 2>&1 ||
		{ cat "$work/out"; fail "$ranks ranks"; }
	expect 'PASSED.* 5 test' "$work/out" $ranks
done

cat >"$work/out.csv" <<'CSV'
step,from_step,shares,seconds_before,seconds_expected,own_seconds,waited_seconds,reason
0,1,4 4,,,,,begins
4,5,8 -,,,,,left out
CSV
task=(train --model mu --image-size 16 --patch 4 --channels 1 --classes 10 --width 16 --heads 2 --mlp-width 32 --depth 1
	--data synthetic --synthetic-images 96 --batch 8 --threads 1 --quiet --eval-every 0 --checkpoint-epochs 0
	--epochs 1000000 --balance "replay:$work/out.csv" --run-dir "$work/run" --hang-seconds 5)
is_training() {
	[ -f "$work/run/steps.csv" ] && [ "$(wc -l <"$work/run/steps.csv")" -gt 30 ]
}
has_ended() {
	! kill -0 "$1" 2>/dev/null
}
rank_of() { # PID: its rank
	tr '\0' '\n' <"/proc/$1/environ" | sed -nE 's/^(OMPI_COMM_WORLD_RANK|PMI_RANK)=//p'
}
second_rank_of() { # PID...: the process below that is rank 1
	local child
	for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" = mural ] && [ "$(rank_of "$child")" = 1 ] && echo "$child"
		second_rank_of "$child"
	done
}
# send SIGNAL CODE PATTERN: to the rank that is left out
send() {
	local launcher code
	rm -rf "$work/run"
	mpirun -n 2 "$program" "${task[@]}" >"$work/out" 2>&1 &
	launcher=$!
	wait_for 60 is_training || { cat "$work/out"; fail "the training did not start"; }
	kill "-$1" "$(second_rank_of $launcher)"
	wait_for 30 has_ended $launcher || { kill -KILL $launcher; cat "$work/out"; fail "$1: it does not end"; }
	wait $launcher
	code=$?
	[ "$2" = any ] || [ $code = "$2" ] || { cat "$work/out"; fail "$1: exit code $code, expected $2"; }
	[ $code != 0 ] || fail "$1: success"
	expect "$3" "$work/out"
}
send USR1 4 '^mural: stopped after step [0-9]+ of [0-9]+, with a checkpoint'
[ -f "$work/run/checkpoints/latest" ] || fail "no checkpoint"
send STOP any '^mural: rank 1 of 2 \(node .*\) was not heard of for [0-9]+ s'
