#!/bin/bash
# Validation images: the same on any ranks, the best weights kept and found again, early stopping, and all of it across a resume.
# SPDX-License-Identifier: MIT
program=$1
. "$(dirname "$0")/../support/mpi.sh"
export TMPDIR=$work
task=(--data synthetic --synthetic-images 120 --model mu --image-size 16 --patch 8 --channels 1 --classes 4 --batch 12
	--lr 1e-3 --init timm --seed 3 --threads 1 --val 0.2)

# train CODE ARGUMENTS...
train() {
	local wanted=$1
	shift
	timeout 120 "$program" train "${task[@]}" "$@" >"$work/out" 2>"$work/err"
	local code=$?
	[ $code = "$wanted" ] || { cat "$work/out" "$work/err"; fail "$*: exit code $code, expected $wanted"; }
}
# The table but for seconds.
table() {
	cut -d, -f1-6 "$1/validation.csv"
}
value() { # KEY FILE: the first one
	sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" "$2" | head -n 1
}
best() { # KEY FILE: of the object "best"
	sed -n '/^  "best": {/,/^  }/p' "$2" | sed -n "s/^ *\"$1\": \"*\([^\",]*\)\"*,*$/\1/p"
}

# On 1, 2 and 3 ranks, and on more ranks than one of these steps has images.
for ranks in 1 2 3; do
	train 0 --ranks $ranks --epochs 6 --eval-every-steps 3 --run-dir "$work/r$ranks"
	expect 'synthetic: 24 validation images choose the best weights by top1' "$work/err"
	paste -d, <(table "$work/r1") <(table "$work/r$ranks") | tail -n +2 |
		awk -F, '{ d = $3 - $9; if (d < 0) d = -d; if ($1 != $7 || $4 != $10 || $5 != $11 || $6 != $12 || d > 1e-6 * $3) bad = 1 }
			END { exit bad || NR != 20 }' || { table "$work/r1"; fail "another validation.csv on $ranks ranks"; }
	[ "$(best step "$work/r1/result.json")" = "$(best step "$work/r$ranks/result.json")" ] || fail "another best step"
done
train 0 --ranks 3 --epochs 1 --val 0.02 --run-dir "$work/two"
expect 'synthetic: 2 validation images choose' "$work/err"

# Steps 3, 6, 8 (the epoch's end), 9, ...: the best is the highest accuracy, the earlier one of equals.
run=$work/r1
awk -F, 'NR > 1 { better = NR == 2 || $4 > top; if (better) { top = $4; step = $1 } if (better != $6) bad = 1 }
	END { print step; exit bad }' "$run/validation.csv" >"$work/step" || fail "validation.csv marks the wrong rows"
[ "$(cat "$work/step")" = "$(best step "$run/result.json")" ] || fail "another best step than in validation.csv"
set=$(best checkpoint "$run/result.json")
[ -f "$set/manifest.json" ] && [ "$(basename "$set")" = "$(cat "$run/checkpoints/best")" ] || fail "the best set is not there"
[ "$(value top1 "$set/manifest.json")" = "$(best validation_accuracy "$run/result.json")" ] || fail "the manifest's metric"

# What `mural eval` finds in the run's folder, wherever that lies, is what the run found.
mv "$run" "$work/moved"
run=$work/moved
evaluate() {
	"$program" eval --run-dir "$run" --result "$work/eval.json" "$@" >"$work/out" 2>"$work/err" ||
		{ cat "$work/err"; fail "eval $*"; }
	value accuracy "$work/eval.json"
}
[ "$(evaluate)" = "$(value test_accuracy "$run/result.json")" ] || fail "eval of the last weights"
[ "$(evaluate --checkpoint latest)" = "$(value test_accuracy "$run/result.json")" ] || fail "eval of the latest checkpoint"
[ "$(evaluate --checkpoint best)" = "$(best test_accuracy "$run/result.json")" ] || fail "eval of the best checkpoint"
for ranks in 1 3; do
	[ "$(evaluate --checkpoint "$(cat "$run/checkpoints/best")" --split validation --ranks $ranks)" = \
		"$(best validation_accuracy "$run/result.json")" ] || fail "eval of the best checkpoint on the validation images"
	awk '/"class":/ { sub(/.*"images": /, ""); images += $0; sub(/.*"right": /, ""); right += $0
			sub(/.*"taken_for": /, ""); gsub(/[{}"]/, ""); n = split($0, cells, ", *")
			for (i = 1; i <= n; i++) { split(cells[i], cell, ": "); taken += cell[2] } }
		/"accuracy":/ && !/"class":/ { sub(/.*: /, ""); accuracy = $0 + 0 }
		END { exit !(images == 24 && taken == 24 && right / images - accuracy < 1e-9 && accuracy - right / images < 1e-9) }' \
		"$work/eval.json" || { cat "$work/eval.json"; fail "classes do not add up on $ranks ranks"; }
done
"$program" eval --run-dir "$run" --checkpoint step-00000001 >"$work/out" 2>"$work/err"
[ $? = 3 ] || fail "a checkpoint that is not there was evaluated"

# Stopped after each of some epochs and gone on from: nothing of it shows, with one set kept beside the best one.
for epochs in 1 2 3 6; do
	train 0 --ranks 2 --epochs $epochs --run-dir "$work/parts" --resume-if-any --keep 1
done
train 0 --ranks 2 --epochs 6 --run-dir "$work/whole" --keep 1
diff <(table "$work/whole") <(table "$work/parts") || fail "validation.csv of a resumed run"
for key in step test_accuracy validation_loss; do
	[ "$(best $key "$work/whole/result.json")" = "$(best $key "$work/parts/result.json")" ] || fail "best $key of a resumed run"
done
printf '%s\n' step-00000048 "$(cat "$work/whole/checkpoints/best")" | sort -u >"$work/sets"
find "$work/whole/checkpoints" -name 'step-*' -printf '%f\n' | sort | diff "$work/sets" - || fail "other sets were kept"
train 2 --ranks 2 --epochs 6 --run-dir "$work/parts" --resume auto --val 0.1
expect 'mural.data.validation_fraction is 0.2 there and 0.1 here' "$work/err"
train 2 --epochs 6 --run-dir "$work/parts" --resume auto --best-metric loss
expect 'mural.best_metric is top1 there and loss here' "$work/err"

# Early stopping: a rate that changes nothing is not better after the first epoch.
stand=(--lr 1e-30 --weight-decay 0 --epochs 20 --early-stop 3)
train 0 --ranks 2 "${stand[@]}" --run-dir "$work/early"
expect '^stopped early: the validation images saw nothing better since epoch 1, step 8$' "$work/out"
[ "$(value steps "$work/early/result.json")" = 32 ] || fail "early stopping after another number of steps"
[ "$(value stopped_early "$work/early/result.json")" = true ] || fail "the result does not tell of early stopping"
train 0 "${stand[@]}" --epochs 2 --run-dir "$work/patient"
train 0 "${stand[@]}" --run-dir "$work/patient" --resume auto
[ "$(value steps "$work/patient/result.json")" = 32 ] || fail "the wait did not survive the resume"
train 0 "${stand[@]}" --run-dir "$work/patient" --resume auto
[ "$(value steps "$work/patient/result.json")" = 32 ] || fail "a run that had stopped early went on"
train 0 "${stand[@]}" --early-stop 5 --run-dir "$work/patient" --resume auto
[ "$(value steps "$work/patient/result.json")" = 48 ] || fail "more patience did not go on"
train 0 --epochs 20 --early-stop 2 --early-stop-delta 0.9 --run-dir "$work/delta"
[ "$(value steps "$work/delta/result.json")" = 24 ] || fail "the delta was not asked for"

# A folder that goes away is noticed, and not made anew; files of a run are not for results.
"$program" train "${task[@]}" --epochs 100000 --lr 1e-30 --checkpoint-epochs 0 --checkpoint-every 400 --run-dir "$work/gone" >"$work/out" 2>"$work/err" &
wait_for 30 test -f "$work/gone/checkpoints/latest" || fail "no checkpoint"
mv "$work/gone" "$work/elsewhere"
wait $!
[ $? = 1 ] || fail "a run whose folder was removed did not fail"
expect '^mural: the run folder was removed or replaced' "$work/err"
[ ! -e "$work/gone" ] || fail "the folder was made anew"
for name in config.json steps.csv weights.safetensors validation.csv checkpoints/latest; do
	train 2 --epochs 1 --run-dir "$work/own" --overwrite --result "$work/own/$name"
	expect "is a file of a run's folder" "$work/err"
	train 2 --epochs 1 --run-dir "$work/own" --overwrite --result "$work/moved/$name"
done
train 0 --epochs 1 --run-dir "$work/own" --overwrite --result "$work/own/result.json"
"$program" eval --run-dir "$work/own" --result "$work/own/result.json" >"$work/out" 2>"$work/err"
[ $? = 2 ] || fail "a run's result was replaced by an evaluation's"
