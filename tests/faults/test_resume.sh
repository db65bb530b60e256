#!/bin/bash
# Killed, stopped or out of disk, and going on: the same bits on the same ranks, agreement on others, one message for what does not
# fit. SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
here=$(cd "$(dirname "$0")/../.." && pwd)
run=$work/run
task=(train --data synthetic --synthetic-images 40 --model mu --image-size 16 --patch 4 --channels 1 --classes 4 --batch 8
	--dropout 0.1 --crop-padding 1 --flip 0.5 --seed 3 --threads 1 --schedule cosine --warmup-steps 4 --quiet)

# train CODE ARGUMENTS...
train() {
	local wanted=$1
	shift
	timeout 120 "$program" "${task[@]}" "$@" >"$work/out" 2>"$work/all"
	local code=$?
	said "$work/all" >"$work/err"
	[ $code = "$wanted" ] || { cat "$work/all"; fail "$*: exit code $code, expected $wanted"; }
}
values() {
	cut -d, -f1-6 "$1/steps.csv"
}
same_run() {
	diff <(values "$1") <(values "$2") || fail "steps.csv of $2 differs from that of $1"
	cmp "$1/weights.safetensors" "$2/weights.safetensors" || fail "the weights of $2 differ"
}
history() {
	grep -E '"(epoch|train_loss|train_accuracy|test_loss|test_accuracy|steps|images)":' "$1/result.json"
}

# In the middle of an epoch of 5 steps, with 2 ranks; a torn row behind it.
train 0 --ranks 2 --epochs 6 --run-dir "$work/whole"
train 4 --ranks 2 --epochs 6 --run-dir "$run" --checkpoint-every 1 --max-hours 1e-9
expect "^mural: stopped after step 1 of 30, with a checkpoint; to go on: --resume $run\$" "$work/err"
[ "$(wc -l <"$work/err")" = 1 ] || fail "more than one message"
[ ! -e "$run/result.json" ] || fail "a result of a run that did not finish"
for _ in 1 2 3 4 5 6 7; do
	train 4 --ranks 2 --epochs 6 --run-dir "$run" --resume auto --max-hours 1e-9
	printf '%s' '4711,1,0.1' >>"$run/steps.csv"
done
expect 'stopped after step 8 of 30' "$work/err"
train 0 --ranks 2 --epochs 6 --resume "$run"
same_run "$work/whole" "$run"
diff <(history "$work/whole") <(history "$run") || fail "the history differs"
cmp <(cut -d, -f2-3 "$work/whole/metrics.csv") <(cut -d, -f2-3 "$run/metrics.csv") || fail "metrics.csv differs"

# Longer than it was meant to be; then on other ranks, into a new folder, cut differently.
train 0 --ranks 2 --epochs 4 --run-dir "$work/four"  --schedule constant
train 0 --ranks 2 --epochs 8 --run-dir "$work/eight" --schedule constant
train 0 --ranks 2 --epochs 8 --run-dir "$work/four" --schedule constant --resume auto
same_run "$work/eight" "$work/four"
for ranks in 1 4; do
	train 0 --ranks $ranks --epochs 8 --run-dir "$work/other$ranks" --schedule constant --micro-batch 2 \
		--resume "$(dirname "$(find "$work/eight/checkpoints" -name manifest.json | sort | head -n 1)")"
	[ "$(wc -l <"$work/other$ranks/steps.csv")" = 6 ] || fail "$ranks ranks: expected the 5 steps of the last epoch"
	paste -d, <(values "$work/eight" | tail -n 5) <(values "$work/other$ranks" | tail -n 5) |
		awk -F, '{ d = $3 - $9; if (d < 0) d = -d; if ($1 != $7 || d > 1e-6 * $3) bad = 1 } END { exit bad }' ||
		fail "$ranks ranks: losses differ by more than 1e-6"
done

# What is damaged is named, and the one before it taken.
cp -r "$work/eight" "$work/damaged"
newest=$(find "$work/damaged/checkpoints" -name manifest.json | sort | tail -n 1)
rm "$(dirname "$newest")/model.safetensors" "$work/damaged/checkpoints/latest"
train 0 --ranks 2 --epochs 8 --run-dir "$work/damaged" --schedule constant --resume auto
expect '^mural: warning: not the latest checkpoint: going on from .*/step-00000035$' "$work/err"
expect 'checkpoints/latest: cannot open' "$work/err"
expect 'step-00000040/model.safetensors: cannot open' "$work/err"
same_run "$work/eight" "$work/damaged"
find "$work/damaged/checkpoints" -name state.json -delete
train 3 --ranks 2 --epochs 8 --run-dir "$work/damaged" --schedule constant --resume auto
expect '^mural: (rank 0 of 2: )?none of the 2 checkpoints of .* is whole$' "$work/err"
train 3 --ranks 2 --epochs 8 --run-dir "$work/damaged" --schedule constant --resume-if-any

# What does not fit or is not there.
train 2 --ranks 2 --epochs 8 --seed 4 --resume "$work/eight"
expect 'the checkpoint is of another training: mural.seed is 3 there and 4 here$' "$work/err"
train 2 --epochs 8 --batch 16 --resume "$work/eight"
expect 'train_batch_size is 8 there and 16 here' "$work/err"
train 2 --run-dir "$work/nothing" --resume auto
expect "there is no checkpoint in '$work/nothing'" "$work/err"
train 2 --resume auto
expect 'expected --run-dir, or the path' "$work/err"
train 2 --run-dir "$work/eight"
expect 'already holds a run' "$work/err"
train 0 --run-dir "$work/nothing" --resume-if-any
train 0 --run-dir "$work/nothing" --overwrite --checkpoint-epochs 0
[ ! -e "$work/nothing/checkpoints" ] || fail "--overwrite left checkpoints of the earlier run"

# Kills at random moments.
for ranks in 1 2; do
	"$here/scripts/fault-campaign" --program "$program" --kills $((15 - 5 * ranks)) --ranks $ranks --seed $ranks || exit 1
done
exit 0
