#!/bin/bash
# A rank that stalls is told of while it lasts, long before anybody gives up: one that is stopped and goes on, one that reads for ever and is
# ended, under a parent, under plain mpirun and under --quiet; the run keeps it. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
run=$work/run
limit=8
# Under a sanitizer on a busy machine a sound rank may be silent for a while.
case ${ASAN_OPTIONS:-}${MURAL_SLOW:-} in *slow*) limit=16 ;; esac
task=(train --data synthetic --synthetic-images 96 --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --batch 4 --epochs 1000000
	--threads 1 --eval-every 0 --checkpoint-epochs 0 --overwrite --run-dir "$run" --hang-seconds "$limit" --no-progress)
is_training() {
	[ -f "$run/steps.csv" ] && [ "$(wc -l <"$run/steps.csv")" -gt 30 ]
}
has_ended() {
	! kill -0 "$1" 2>/dev/null
}
rank_of() { # PID: its rank
	tr '\0' '\n' <"/proc/$1/environ" | sed -nE 's/^(OMPI_COMM_WORLD_RANK|PMI_RANK)=//p'
}
find_rank() { # RANK PID: its process, below that one
	local child
	for child in $(cat "/proc/$2/task/$2/children" 2>/dev/null); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" = mural ] && [ "$(rank_of "$child")" = "$1" ] && echo "$child"
		find_rank "$1" "$child"
	done
}
start() { # COMMAND...
	rm -rf "$run"
	"$@" >"$work/out" 2>"$work/all" &
	launcher=$!
	wait_for 60 is_training || { cat "$work/all"; fail "the training did not start"; }
}
shown() { # PATTERN
	grep -qE "$1" "$work/all"
}
kept() { # PATTERN
	grep -qE "$1" "$run/stalls.csv" 2>/dev/null
}
waits='^waiting [0-9]+ s for rank 1 \(host [^,]+, .*\): nothing is heard of it; last operation: '

# stopped, told, goes on; the end comes as if nothing had been
start "$program" "${task[@]}" --ranks 2 --max-steps 100000000
stalled=$(find_rank 1 $launcher)
kill -STOP "$stalled"
wait_for $((limit)) shown "$waits" || { kill -KILL $launcher "$stalled"; cat "$work/all"; fail "nobody tells of a stopped rank"; }
kill -CONT "$stalled"
wait_for 20 shown '^waited [0-9]+ s for rank 1 \(.*\): it goes on$' || { cat "$work/all"; fail "nobody tells that it goes on"; }
kept '^[0-9]+,1,[^,]+,.*,silent,[0-9.]+,[0-9]+,' && kept ',over,' || { cat "$run/stalls.csv"; fail "stalls.csv"; }
kill -USR1 $launcher
wait_for 30 has_ended $launcher || { kill -KILL $launcher; fail "it does not stop"; }

# stopped for good, under plain mpirun and with --quiet: told first, or only kept, and then ended
start mpirun -n 2 "$program" "${task[@]}"
kill -STOP "$(find_rank 1 $launcher)"
wait_for 40 has_ended $launcher || { kill -KILL $launcher; fail "mpirun is still there"; }
awk -v waits="$waits" '/^waiting [0-9]+ s for rank 1 / { told = 1 } /was not heard of for/ { exit !told } END { exit !told }' "$work/all" ||
	{ cat "$work/all"; fail "not told before it was ended"; }
start mpirun -n 2 "$program" "${task[@]}" --quiet
kill -STOP "$(find_rank 1 $launcher)"
wait_for 40 has_ended $launcher || { kill -KILL $launcher; fail "mpirun is still there"; }
! shown 'waiting [0-9]+ s' || fail "--quiet speaks"
kept ',silent,' || fail "--quiet keeps nothing"

# the first rank cannot tell of itself: the second one does
start mpirun -n 2 "$program" "${task[@]}"
kill -STOP "$(find_rank 0 $launcher)"
wait_for 40 has_ended $launcher || { kill -KILL $launcher; fail "mpirun is still there"; }
shown '^waiting [0-9]+ s for rank 0 \(' || { cat "$work/all"; fail "nobody tells of the first rank"; }
exit 0
