#!/bin/bash
# --max-restarts: ranks that are killed or hang are started again from the last complete checkpoint, and in the end there are the bits of
# a run that nobody disturbed. Not for mistakes, not for ever, and not against the will of who stops it.
# SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
[ "$flavour" = openmpi ] || { echo "skipped: only Open MPI tells which rank was killed"; exit 77; }
set -m # background jobs do not ignore SIGINT then
run=$work/run
task=(train --ranks 2 --data synthetic --synthetic-images 40 --model mu --image-size 16 --patch 4 --channels 1 --classes 4 --batch 8
	--dropout 0.1 --crop-padding 1 --flip 0.5 --seed 3 --threads 1 --eval-every 0 --quiet --checkpoint-epochs 0)
every=(--checkpoint-every 3)

rows() {
	wc -l 2>/dev/null <"$1/steps.csv" || echo 0
}
has_rows() { # RUN N
	[ "$(rows "$1")" -gt "$2" ]
}
has_said() {
	grep -q "$1" "$work/all"
}
has_ended() {
	! kill -0 "$1" 2>/dev/null
}
rank() { # number N of the ranks under $parent
	local mpirun
	mpirun=$(tr -d ' ' <"/proc/$parent/task/$parent/children")
	cut -d ' ' -f $(($1 + 1)) "/proc/$mpirun/task/$mpirun/children"
}
is_missing() {
	[ ! -e "$1" ]
}
has_named() {
	ls runs/*/steps.csv >/dev/null 2>&1
}
begin() { # OPTIONS...
	"$program" "${task[@]}" "$@" >"$work/out" 2>"$work/all" &
	parent=$!
}
# kill_rank SIGNAL RANK RUN ROWS: once the table has so many.
kill_rank() {
	wait_for 60 has_rows "$3" "$4" || { cat "$work/all"; fail "no $4 steps"; }
	kill "-$1" "$(rank "$2")"
}
end() { # CODE WHAT
	wait_for 90 has_ended "$parent" || { kill -KILL "$parent"; fail "$2: the parent is still there"; }
	wait "$parent"
	local code=$?
	[ $code = "$1" ] || { cat "$work/all"; fail "$2: exit code $code, expected $1"; }
	! ls -d "$work"/mural-* 2>/dev/null || fail "$2: temporary folders were left"
}
same_as() { # RUN OF
	diff <(cut -d, -f1-6 "$2/steps.csv") <(cut -d, -f1-6 "$1/steps.csv") >"$work/diff" || { head "$work/diff"; fail "steps.csv differs"; }
	cmp "$2/weights.safetensors" "$1/weights.safetensors" || fail "the weights differ"
}

timeout 200 "$program" "${task[@]}" --epochs 120 --run-dir "$work/whole" >"$work/out" 2>&1 || { cat "$work/out"; fail "the undisturbed run"; }

# Two kills and a hang.
begin --epochs 120 --run-dir "$run" "${every[@]}" --max-restarts 3 --hang-seconds 2
kill_rank KILL 1 "$run" 30
wait_for 30 has_said 'restart 1 of 3 in 1 s, from step [0-9]*[1-9]' || { cat "$work/all"; fail "no restart"; }
kill_rank KILL 0 "$run" 120
wait_for 30 has_said 'restart 2 of 3 in 2 s, from step' || { cat "$work/all"; fail "no second restart"; }
kill_rank STOP 1 "$run" 240
end 0 "three times"
expect '^mural: rank [01] of 2 \(node .*\) was killed by signal 9 \(Killed\)' "$work/all" 2
expect '^mural: rank 1 of 2 \(node .*\) was not heard of for' "$work/all"
expect '^mural: restart 3 of 3 in 4 s, from step [0-9]+ ' "$work/all"
same_as "$run" "$work/whole"

# Before there is a checkpoint; in a folder that is named by the time; with an earlier run in the folder that was to be replaced.
(
	cd "$work" || exit
	mkdir named
	cd named || exit
	begin --epochs 120 --max-restarts 1
	wait_for 60 has_named || fail "no run folder"
	kill_rank KILL 1 "$(echo runs/*)" 20
	end 0 "named by the time"
	expect '^mural: restart 1 of 1 in 1 s, from the beginning: there is no complete checkpoint yet$' "$work/all"
	[ "$(find runs -maxdepth 1 -mindepth 1 | wc -l)" = 1 ] || fail "the restart began another folder"
	same_as "$(echo runs/*)" "$work/whole"
) || exit 1
begin --epochs 120 --run-dir "$run" "${every[@]}" --keep 1000 --max-restarts 1 --overwrite
wait_for 30 is_missing "$run/result.json" || fail "the earlier run was not replaced"
kill_rank KILL 0 "$run" 50
end 0 "--overwrite"
expect '^mural: restart 1 of 1 in 1 s, from step [0-9]+ ' "$work/all"
same_as "$run" "$work/whole"

# Back to an early set by its name: the restart does not take later ones of the future that was given up.
set=$(find "$run/checkpoints" -name 'step-*' | sort | head -n 1)
rm -f "$run/result.json"
begin --epochs 120 --resume "$set" --max-restarts 1
wait_for 30 is_missing "$run/weights.safetensors" || fail "the run did not go back"
kill_rank KILL 1 "$run" 1
end 0 "--resume SET"
same_as "$run" "$work/whole"

# No restart is left.
rm -rf "$run"
begin --epochs 100000 --run-dir "$run" "${every[@]}" --max-restarts 1
kill_rank KILL 1 "$run" 20
wait_for 30 has_said 'restart 1 of 1' || fail "no restart"
kill_rank KILL 1 "$run" $(($(rows "$run") + 30))
end 1 "too many deaths"
expect '^mural: no restart is left of 1 \(--max-restarts\)$' "$work/all"

# Stopped while it waits, and in a restart.
for signal in TERM INT; do
	begin --epochs 100000 --resume "$run" "${every[@]}" --max-restarts 2
	kill_rank KILL 0 "$run" $(($(rows "$run") + 30))
	wait_for 30 has_said 'restart 1 of 2' || fail "no restart"
	kill -$signal $parent
	end 4 "$signal before the restart"
	expect '^mural: stopped by signal [0-9]+ \(.*\) before the restart; to go on: --resume .*/step-[0-9]+$' "$work/all"
done
begin --epochs 100000 --resume "$run" "${every[@]}" --max-restarts 2
kill_rank KILL 0 "$run" $(($(rows "$run") + 30))
wait_for 30 has_said 'restart 1 of 2' || fail "no restart"
wait_for 30 has_rows "$run" $(($(rows "$run") + 30)) || fail "the restart did not begin"
kill -TERM $parent
end 4 "TERM in the restart"
expect "^mural: stopped after step [0-9]+ of [0-9]+, with a checkpoint; to go on: --resume $run\$" "$work/all"

# Mistakes are none of its business.
begin --epochs 2 --run-dir "$run" --max-restarts 2
end 2 "a folder that holds a run"
begin --epochs 9 --run-dir "$work/nan" --max-restarts 2 --lr 1e30
end 1 "a loss that is not finite"
expect 'restart' "$work/all" 0
begin --epochs 9 --run-dir "$work/data" --data /nonexistent --max-restarts 2
end 3 "no data"
expect 'restart' "$work/all" 0
task=("${task[@]:0:1}" "${task[@]:3}")
begin --epochs 2 --max-restarts 2
end 2 "without --ranks"
expect '^mural: only ranks that --ranks starts are started again; give --ranks 2 or more$' "$work/all"
mpirun -n 2 "$program" "${task[@]}" --epochs 2 --max-restarts 2 >"$work/out" 2>"$work/all"
expect '^mural: only ranks that --ranks starts are started again; under your own mpirun' "$work/all"
exit 0
