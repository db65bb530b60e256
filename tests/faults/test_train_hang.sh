#!/bin/bash
# A rank of a training hangs: it is stopped, or an image that it reads never comes (a pipe in the place of the file, as a server that is
# gone). One message names it with host, processor and what it did; all are gone; the run folder has no result. A slow
# training is none: steps that take longer than the limit. Under a parent and under plain mpirun. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
data=$work/data run=$work/run
pictures=$(cd "$(dirname "$0")/../golden/pictures" && pwd)

picture=$pictures/palette.png
for class in a b; do
	mkdir -p "$data/train/$class" "$data/val/$class"
	for i in 1 2 3 4 5 6; do
		cp "$picture" "$data/train/$class/$i.png"
	done
	cp "$picture" "$data/val/$class/1.png"
done
task=(train --data "$data" --model mu --image-size 16 --patch 8 --channels 3 --batch 4 --epochs 1000000
	--classes 2 --threads 1 --quiet --eval-every 0 --checkpoint-every 5 --overwrite --run-dir "$run" --prefetch 1)
timeout 60 "$program" "${task[@]}" --max-steps 1 >"$work/out" 2>"$work/all" || {
	grep -q 'libspng' "$work/all" && { echo "skipped: Mural was built without libspng"; exit 77; }
	cat "$work/all"
	fail "a step"
}

is_training() {
	[ -f "$run/steps.csv" ] && [ "$(wc -l <"$run/steps.csv")" -gt 8 ]
}
has_ended() {
	! kill -0 "$1" 2>/dev/null
}
ranks_of() { # every process below that is a rank
	local child
	for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" = mural ] && echo "$child"
		ranks_of "$child"
	done
}

# hang HOW LAUNCHER...: HOW is stop (a rank) or read (an image)
hang() {
	local how=$1 launcher code ranks
	shift
	rm -rf "$run"
	"$@" "${task[@]}" --hang-seconds 2 >"$work/out" 2>"$work/all" &
	launcher=$!
	wait_for 60 is_training || { cat "$work/all"; fail "the training did not start"; }
	ranks=$(ranks_of $launcher)
	[ "$(echo "$ranks" | wc -w)" = 2 ] || fail "expected 2 ranks, found: $ranks"
	if [ "$how" = stop ]; then
		kill -STOP "$(echo "$ranks" | tail -n 1)"
	else
		mkfifo "$work/pipe"
		exec 8<>"$work/pipe" # a writer that says nothing
		mv "$work/pipe" "$data/train/a/3.png"
	fi
	wait_for 30 has_ended $launcher || { kill -KILL $launcher; cat "$work/all"; fail "$how: the launcher is still there"; }
	wait $launcher
	code=$?
	[ $code = 1 ] || { cat "$work/all"; fail "$how: exit code $code, expected 1"; }
	for pid in $ranks; do
		wait_for 10 has_ended "$pid" || fail "$how: a rank is still there"
	done
	[ "$how" = stop ] || { exec 8>&-; rm "$data/train/a/3.png"; cp "$picture" "$data/train/a/3.png"; }
	[ ! -e "$run/result.json" ] || fail "$how: a result of a run that did not finish"
	expect '^       mural.hang_seconds = 2$' "$work/all"
	[ -e "$run/checkpoints/latest" ] || fail "$how: no checkpoint"
}
for launcher in parent mpirun; do
	words=("$program")
	ending=(--ranks 2)
	if [ $launcher = mpirun ]; then
		words=(mpirun -n 2 "$program")
		ending=()
	fi
	task+=("${ending[@]}")
	hang stop "${words[@]}"
	expect '^mural: rank [01] of 2 \(node [^,]*, .*\) was not heard of for [0-9]+ s: its process is stopped' "$work/all"
	hang read "${words[@]}"
	expect '^mural: rank [01] of 2 \(node [^,]*, .*\) is stuck: nothing done for [0-9]+ s; last operation: (reading images for the micro-batch|evaluation of micro-batch) \(0\), step [0-9]+$' "$work/all"
	[ $launcher = mpirun ] || task=("${task[@]:0:${#task[@]}-2}")
done

# Steps that take several times the limit are no hang. Without oneDNN a few images suffice.
images=8
"$program" info | grep -q 'matrix products *oneDNN' && images=64
"$program" train --data synthetic --synthetic-images $images --model vit_ti_16 --classes 4 --batch $images --max-steps 2 --ranks 2 --threads 1 \
	--quiet --eval-every 0 --checkpoint-epochs 0 --hang-seconds 1 --run-dir "$work/slow" >"$work/out" 2>"$work/all" || {
	cat "$work/all"
	fail "a slow training was ended"
}
exit 0
